/**
 * The tabs of the suite: the command line opens and ends them, each with a renderer of its own.
 *
 * Invariant: a tab is there when `open` has resolved, and ended by closing it or by killing its renderer. Nobody waits for a tab that
 * was ended: it gives no reply.
 */

import { type BirpcReturn, createBirpc } from 'birpc';
import { type Director, overChannel } from './protocol.ts';
import type { Tab } from './tab.ts';

export type Cause = 'close' | 'kill';

declare global {
  /** Put here by the command line before the page loads: opens the tab of an address, or ends it. A page alone has none. */
  var varveBenchTabs: ((act: 'open' | Cause, address: string) => Promise<void>) | undefined;
}

/** A tab, and its methods, which reject with what they failed with. */
export interface RemoteTab {
  readonly address: string;
  readonly call: BirpcReturn<Tab, Director>;
  readonly channel: BroadcastChannel;
}

export class House {
  readonly #tabs = new Set<RemoteTab>();

  async open(): Promise<RemoteTab> {
    const name = crypto.randomUUID();
    const address = `./tab.html?channel=${name}`;
    const channel = new BroadcastChannel(name);
    let ready = (): void => undefined;
    const arrived = new Promise<void>((resolve) => {
      ready = resolve;
    });
    const tab = { address, call: createBirpc<Tab, Director>({ ready }, overChannel(channel)), channel };
    this.#tabs.add(tab);
    await globalThis.varveBenchTabs?.('open', address);
    await arrived;
    return tab;
  }

  async end(tab: RemoteTab, cause: Cause): Promise<void> {
    this.#tabs.delete(tab);
    await globalThis.varveBenchTabs?.(cause, tab.address);
    tab.channel.close();
  }

  async close(): Promise<void> {
    for (const tab of this.#tabs) await this.end(tab, 'close');
  }
}
