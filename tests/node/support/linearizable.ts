/**
 * Whether a history of calls is linearizable: whether the calls can be put in an order, each between its start and its end, in which
 * a store that does one at a time would answer the same.
 *
 * A search (Wing and Gong, "Testing and Verifying Concurrent Objects", 1993) that visits no state twice (Lowe, "Testing for
 * Linearizability", 2017). A call that never ended may have been done, or not.
 */

/** A call; its stamps come from one counter, and differ. */
export interface Call<S> {
  readonly client: number;
  readonly start: number;
  /** Infinity if it never ended. */
  end: number;
  /** The keys that it touches. */
  readonly keys: readonly string[];
  /** Calls of one client that have a key in common are done in the order of the calls, if one of them writes. */
  readonly isWrite: boolean;
  /** The state after the call; undefined if the store cannot answer so. */
  apply(state: S): S | undefined;
}

/** States are compared by `name`. */
export function isLinearizable<S>(history: readonly Call<S>[], initial: S, name: (state: S) => string): boolean {
  const calls = [...history].sort((a, b) => a.start - b.start);
  const before = calls.map((call, i) =>
    calls.flatMap((other, j) =>
      j < i &&
      other.client === call.client &&
      (other.isWrite || call.isWrite) &&
      other.keys.some((key) => call.keys.includes(key))
        ? [j]
        : [],
    ),
  );
  const done = new Array<boolean>(calls.length).fill(false);
  const seen = new Set<string>();
  /** `first`: all calls before it are done. */
  const search = (state: S, first: number): boolean => {
    while (done[first]) first++;
    const ended = Math.min(...calls.flatMap(({ end }, i) => (done[i] ? [] : [end])));
    if (ended === Number.POSITIVE_INFINITY) return true;
    const rest = calls.flatMap((_, i) => (i >= first && done[i] ? [i] : []));
    const visited = `${first} ${rest} ${name(state)}`;
    if (seen.has(visited)) return false;
    seen.add(visited);
    for (let i = first; i < calls.length; i++) {
      const call = calls[i] as Call<S>;
      if (call.start > ended) break;
      if (done[i] || before[i]?.some((j) => !done[j])) continue;
      const next = call.apply(state);
      if (next === undefined) continue;
      done[i] = true;
      if (search(next, first)) return true;
      done[i] = false;
    }
    return false;
  };
  return search(initial, 0);
}
