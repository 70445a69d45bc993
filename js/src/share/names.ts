/**
 * The things that the tabs of an origin share by name: channels, locks, and the messages that they send there.
 *
 *     lock     varve:<store>                its holder leads: that worker has the engine, and the files
 *     lock     varve-open:<store>           shared by every worker that has the store open or waits to lead it; exclusive in `varve/synchronous`
 *     lock     varve-client:<store>:<id>    held by a page while its client lives: a leader that gets it closes what the client had open
 *     lock     varve-transaction:<store>    held by a page while an exclusive transaction of its is open
 *     lock     varve-zero:<database>        held by a page while a transaction of `varve/zero` is open: shared by those that only read
 *     lock     varve-worker:<id>            held by a worker: a page that gets it has lost its worker
 *     channel  varve:<store>                which worker leads, and which could (`ChannelMessage`)
 *     channel  varve:<store>:<link>         one client and its leader, if they have no port
 *
 * Invariant: a lock is never stolen. A frozen holder could still write.
 */

/**
 * The version of all messages between tabs, frames included. Tabs of different versions do not share a store: the newer
 * one gets it, and the older one gets the error `VARVE_VERSION`.
 */
export const PROTOCOL = 5;

/** The messages of workers on the channel of a store. `from` is the member that sends it. */
export type ChannelMessage = { readonly from: string; readonly protocol: number } & (
  | /** Which worker leads? */ { readonly type: 'seek' }
  | /** I lead, or will as soon as the store is open. The name of the term is new each time that a worker leads. */ {
      readonly type: 'lead';
      readonly term: string;
    }
  | /** My page is hidden. Is the page of another worker visible? */ { readonly type: 'dim' }
  | /** My page is visible. */ { readonly type: 'visible' }
  | /** I stop leading; `to` should lead next. */ { readonly type: 'yield'; readonly to: string }
  | /** A client wants to talk to the leader `to` over the channel of `link`. */ {
      readonly type: 'connect';
      readonly to: string;
      readonly link: string;
    }
  | /** Somebody deletes the store: close it. */ { readonly type: 'delete' }
);

export const leaderLock = (store: string): string => `varve:${store}`;
export const clientLock = (store: string, client: number): string => `varve-client:${store}:${client}`;
export const transactionLock = (store: string): string => `varve-transaction:${store}`;
export const databaseLock = (database: string): string => `varve-zero:${database}`;
export const workerLock = (member: string): string => `varve-worker:${member}`;
export const channelOf = (store: string): string => `varve:${store}`;
export const linkChannel = (store: string, link: string): string => `varve:${store}:${link}`;

/** A name that nobody else has. */
export function uniqueName(): string {
  return crypto.randomUUID();
}

/** Whether tabs can share stores here. That needs locks that end with their holders, and channels. */
export function canShare(): boolean {
  return globalThis.navigator?.locks !== undefined && typeof BroadcastChannel === 'function';
}
