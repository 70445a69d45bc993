/** The messages between the director of the suite `multi-tab` and its tabs, over a BroadcastChannel for each tab. */

export interface Director {
  ready(): void;
}

/** The calls over a channel. They may take any time: writers write until they are stopped. */
export const overChannel = (channel: BroadcastChannel) => ({
  timeout: -1,
  bind: 'functions' as const,
  post: (message: unknown) => channel.postMessage(message),
  on: (take: (message: unknown) => void) => {
    channel.onmessage = ({ data }) => take(data);
  },
});

/** Engines that several tabs can use at once, Varve first. */
export const SHARED: readonly string[] = ['varve', 'indexeddb'];

export type Call = 'get' | 'set';

export interface Work {
  readonly engine: string;
  readonly call: Call;
  readonly waves: boolean;
  /** Writes go to each `of`-th key from the `index`-th on, so that no two tabs write the same. */
  readonly index: number;
  readonly of: number;
  readonly calls: number;
  readonly budgetMs: number;
  readonly group: number;
  readonly round: number;
}

/** A write of a writer: when it was called and when it was acknowledged, in milliseconds since 1970. */
export type Acknowledged = readonly [called: number, acknowledged: number];

export interface Written {
  readonly writes: readonly Acknowledged[];
  readonly errors: readonly string[];
}

/** Milliseconds since 1970, finer than `Date.now()`, the same in all tabs of a machine. */
export function epochMs(): number {
  return performance.timeOrigin + performance.now();
}
