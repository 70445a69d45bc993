/**
 * Where the tabs of the suite live. The command line opens and ends real ones, each with a renderer of its own. A page alone has
 * only frames: same-origin frames share the page's process and its thread, their workers apart, so its rows say `frame`.
 *
 * Invariant: a tab is there when `open` has resolved, and ended by one of the ways of its house or not at all.
 */

import { type Command, channelName, type FromTab } from './protocol.ts';
import type { Tab } from './tab.ts';

export type Place = 'tab' | 'frame';

/** How a tab that leads is ended: closed, only its worker, or its process killed. */
export type Cause = 'close' | 'terminate' | 'kill';

/** A request to the command line. */
export type TabRequest =
  | { readonly type: 'open'; readonly tab: string; readonly path: string }
  | { readonly type: 'close' | 'kill' | 'aim'; readonly tab: string };

declare global {
  /** Put here by the command line before the page loads; answers with whether it was done. */
  var varveBenchTabs: ((request: TabRequest) => Promise<boolean>) | undefined;
}

/** The commands of a tab: its methods. */
type CommandName = keyof Tab;
type Given<N extends CommandName> = Parameters<Tab[N]>[0];
type Answer<N extends CommandName> = ReturnType<Tab[N]>;

/** A tab, which obeys commands. */
export class RemoteTab {
  constructor(
    readonly name: string,
    private readonly house: House,
  ) {}

  /** Has the tab do something; rejects with what it failed with. */
  ask<N extends CommandName>(name: N, given?: Given<N>): Answer<N> {
    return this.house.ask(this.name, name, given);
  }
}

interface Waiting {
  readonly tab: string;
  readonly resolve: (value: never) => void;
  readonly reject: (error: Error) => void;
}

/** Opens tabs, ends them, and carries what is said. */
export class House {
  readonly place: Place = globalThis.varveBenchTabs === undefined ? 'frame' : 'tab';
  readonly #run = crypto.randomUUID();
  readonly #channel = new BroadcastChannel(channelName(this.#run));
  readonly #waiting = new Map<number, Waiting>();
  readonly #arriving = new Map<string, () => void>();
  readonly #frames = new Map<string, HTMLIFrameElement>();
  readonly #tabs = new Set<string>();
  #last = 0;

  constructor() {
    this.#channel.onmessage = ({ data }: MessageEvent<FromTab>) => this.#hear(data);
  }

  /** Opens a tab; resolves when it listens. */
  async open(): Promise<RemoteTab> {
    const name = `tab-${++this.#last}`;
    const path = `./tab.html?run=${this.#run}&tab=${name}`;
    const arrived = new Promise<void>((resolve) => {
      this.#arriving.set(name, resolve);
    });
    this.#tabs.add(name);
    if (globalThis.varveBenchTabs !== undefined) await globalThis.varveBenchTabs({ type: 'open', tab: name, path });
    else {
      const frame = document.createElement('iframe');
      Object.assign(frame, { src: path, title: name, hidden: true });
      this.#frames.set(name, frame);
      document.body.append(frame);
    }
    await arrived;
    return new RemoteTab(name, this);
  }

  /** Gets ready to end a tab, where that takes time; false where it cannot be ended this way. */
  async aim(tab: RemoteTab, cause: Cause): Promise<boolean> {
    if (cause !== 'kill') return true;
    return (await globalThis.varveBenchTabs?.({ type: 'aim', tab: tab.name })) ?? false;
  }

  /** Ends a tab, or its worker; resolves when that was done. */
  async end(tab: RemoteTab, cause: Cause): Promise<void> {
    if (cause === 'terminate') {
      await tab.ask('terminate');
      return;
    }
    this.#tabs.delete(tab.name);
    for (const [id, { tab: name }] of this.#waiting) if (name === tab.name) this.#waiting.delete(id);
    await globalThis.varveBenchTabs?.({ type: cause, tab: tab.name });
    this.#frames.get(tab.name)?.remove();
    this.#frames.delete(tab.name);
  }

  /** Closes all tabs that are left. */
  async close(): Promise<void> {
    for (const name of this.#tabs) await this.end(new RemoteTab(name, this), 'close');
    this.#channel.close();
  }

  ask<N extends CommandName>(to: string, name: N, given?: Given<N>): Answer<N> {
    const id = ++this.#last;
    const replied = new Promise<never>((resolve, reject) => {
      this.#waiting.set(id, { tab: to, resolve, reject });
    });
    const command: Command = { to, id, name, with: given };
    this.#channel.postMessage(command);
    return replied as unknown as Answer<N>;
  }

  #hear(message: FromTab): void {
    if (message.type === 'ready') {
      this.#arriving.get(message.from)?.();
      this.#arriving.delete(message.from);
      return;
    }
    const waiting = this.#waiting.get(message.id);
    this.#waiting.delete(message.id);
    if (message.type === 'reply') waiting?.resolve(message.value as never);
    else waiting?.reject(new Error(`${message.from}: ${message.error}`));
  }
}
