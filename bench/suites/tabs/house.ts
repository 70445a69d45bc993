/**
 * The homes of the suite's tabs. The command line opens and ends real ones, each with a renderer of its own. A page alone has
 * only frames: same-origin frames share the page's process and its thread, their workers apart, so its rows say `frame`.
 *
 * Invariant: a tab is there when `open` has resolved, and ended by one of the ways of its house or not at all. Nobody waits for a
 * tab that was ended: it gives no reply.
 */

import { type BirpcReturn, createBirpc } from 'birpc';
import { type Director, overChannel } from './protocol.ts';
import type { Tab } from './tab.ts';

/** How a tab that leads is ended: closed, only its worker, or its process killed. */
export type Cause = 'close' | 'terminate' | 'kill';

declare global {
  /** Put here by the command line before the page loads: opens the tab of an address, or ends it. */
  var varveBenchTabs: ((act: 'open' | 'close' | 'kill', address: string) => Promise<void>) | undefined;
}

/** A tab, and its methods, which reject with what they failed with. */
export interface RemoteTab {
  readonly address: string;
  readonly call: BirpcReturn<Tab, Director>;
  readonly channel: BroadcastChannel;
  readonly frame?: HTMLIFrameElement;
}

/** Opens tabs and ends them. */
export class House {
  readonly place: 'tab' | 'frame' = globalThis.varveBenchTabs === undefined ? 'frame' : 'tab';
  readonly #tabs = new Set<RemoteTab>();

  /** Opens a tab; resolves when it listens. */
  async open(): Promise<RemoteTab> {
    const name = crypto.randomUUID();
    const address = `./tab.html?channel=${name}`;
    const channel = new BroadcastChannel(name);
    let ready = (): void => undefined;
    const arrived = new Promise<void>((resolve) => {
      ready = resolve;
    });
    const call = createBirpc<Tab, Director>({ ready }, overChannel(channel));
    const frame = globalThis.varveBenchTabs === undefined && { frame: document.createElement('iframe') };
    const tab: RemoteTab = { address, call, channel, ...frame };
    this.#tabs.add(tab);
    if (tab.frame !== undefined) {
      Object.assign(tab.frame, { src: address, title: 'a tab', hidden: true });
      document.body.append(tab.frame);
    }
    await globalThis.varveBenchTabs?.('open', address);
    await arrived;
    return tab;
  }

  /** Ends a tab, or its worker; resolves when that was done. */
  async end(tab: RemoteTab, cause: Cause): Promise<void> {
    if (cause === 'terminate') return tab.call.terminate();
    this.#tabs.delete(tab);
    await globalThis.varveBenchTabs?.(cause, tab.address);
    tab.frame?.remove();
    tab.channel.close();
  }

  /** Closes all tabs that are left. */
  async close(): Promise<void> {
    for (const tab of this.#tabs) await this.end(tab, 'close');
  }
}
