/**
 * What the tabs of an origin share by name: channels, locks, and the words they use there.
 *
 *     lock     varve:<store>                whoever holds it leads: its worker has the engine, and the files
 *     lock     varve-open:<store>           shared by every worker that has the store open or waits to lead it; exclusive in `varve/sync`
 *     lock     varve-client:<store>:<id>    held by a page while its client lives: a leader that gets it lets go of what the client had
 *     lock     varve-worker:<id>            held by a worker: a page that gets it has lost its worker
 *     channel  varve:<store>                who leads, who would (`ChannelMessage`)
 *     channel  varve:<store>:<link>         one client and its leader, where no port can be had
 *
 * Invariant: a lock is never stolen. A frozen holder could still write.
 */

/**
 * The version of all that tabs tell each other, frames included. Tabs of different versions do not share a store: the newer
 * one has it, and the older one is told `VARVE_VERSION`.
 */
export const PROTOCOL = 2;

/** What workers say on the channel of a store. `from` is the member that says it. */
export type ChannelMessage = { readonly from: string; readonly protocol: number } & (
  | /** Who leads? */ { readonly type: 'seek' }
  | /** I do, or will as soon as the store is open. */ { readonly type: 'lead' }
  | /** My page is hidden: is somebody's visible? */ { readonly type: 'dim' }
  | /** Mine is. */ { readonly type: 'visible' }
  | /** I stop leading; the next one is to be `to`. */ { readonly type: 'yield'; readonly to: string }
  | /** A client wants to talk to the leader `to` over the channel of `link`. */ {
      readonly type: 'connect';
      readonly to: string;
      readonly link: string;
    }
  | /** Somebody deletes the store: close it. */ { readonly type: 'delete' }
);

export const leaderLock = (store: string): string => `varve:${store}`;
export const openLock = (store: string): string => `varve-open:${store}`;
export const clientLock = (store: string, client: number): string => `varve-client:${store}:${client}`;
export const workerLock = (member: string): string => `varve-worker:${member}`;
export const channelOf = (store: string): string => `varve:${store}`;
export const linkChannel = (store: string, link: string): string => `varve:${store}:${link}`;

/** A name that nobody else has. */
export function uniqueName(): string {
  return crypto.randomUUID();
}

/** Whether tabs can share stores here: by locks that end with their holders, and a channel. */
export function canShare(): boolean {
  return globalThis.navigator?.locks !== undefined && typeof BroadcastChannel === 'function';
}
