/**
 * The package `varve/react`: hooks for components that show what is in a store.
 *
 * Invariants: Rendering starts nothing: stores are opened and queries run in effects, so a server that renders does neither. A component
 * that is gone is subscribed to nothing.
 */

import { type DependencyList, useEffect, useMemo, useSyncExternalStore } from 'react';
import { NamedStores } from './adapters/named-stores.ts';
import type { Live, LiveCount, LiveOptions, LiveRange } from './changes/types.ts';
import type { OpenOptions } from './index.ts';
import type { Snapshot } from './store/snapshot.ts';
import type { Store } from './store/store.ts';
import type { View } from './store/view.ts';
import type { Key, KeyRange } from './types.ts';

/** A store, a view, or the promise of one: the same promise at each rendering. Undefined while there is none, as from `useStore`. */
export type MaybeStore<K, V> = View<K, V> | PromiseLike<View<K, V>> | undefined;

/** The state of a hook: its value, or the error that it throws. */
type Outcome = { readonly value: unknown } | { readonly error: unknown };

/** Starts to report values, until an error. Returns a function that ends it. */
type Start = (next: (value: unknown) => void, error: (error: unknown) => void) => () => void;

/** The arguments of `useSyncExternalStore`. Values come from `start`, which runs while the component is there. */
function sourceOf(server: unknown, first: unknown, start: Start) {
  const rendered: Outcome = { value: server };
  // The same object for the same value: otherwise React renders once more after it has taken over the HTML of a server.
  let outcome: Outcome = Object.is(first, server) ? rendered : { value: first };
  return {
    getSnapshot: () => outcome,
    getServerSnapshot: () => rendered,
    subscribe(changed: () => void): () => void {
      let isOver = false;
      const become = (next: Outcome): void => {
        if (isOver || ('value' in next && 'value' in outcome && Object.is(next.value, outcome.value))) return;
        outcome = next;
        changed();
      };
      const end = start(
        (value) => become({ value }),
        (error) => become({ error }),
      );
      return () => {
        isOver = true;
        end();
      };
    },
  };
}

/** The value of a source. An error is thrown while React renders, so an error boundary catches it. */
function useSource({ subscribe, getSnapshot, getServerSnapshot }: ReturnType<typeof sourceOf>): unknown {
  const outcome = useSyncExternalStore(subscribe, getSnapshot, getServerSnapshot);
  if ('error' in outcome) throw outcome.error;
  return outcome.value;
}

/** The stores that `useStore` has opened. */
const stores = new NamedStores();

/**
 * A store by its name, or undefined until it is open, and on a server. It is opened once for all components, with the options of the
 * first one, and stays open when they are gone. After `close()` or `deleteStore()` the next component opens it again. An error of the
 * opening is thrown while React renders, for an error boundary; a component that comes after that tries again.
 *
 * @example
 * const db = useStore('notes');
 * const notes = useLive(db, { prefix: ['note'] }, []);
 */
export function useStore<K = Key, V = unknown>(name: string, options?: OpenOptions<K, V>): Store<K, V> | undefined {
  const source = useMemo(
    () =>
      sourceOf(undefined, stores.opening(name)?.store, (next, error) => {
        stores.store(name, options as never).then(next, error);
        return () => undefined;
      }),
    [name],
  );
  return useSource(source) as Store<K, V> | undefined;
}

/**
 * The result of a query, kept up to date: that of `store.live(query, options)`. It is `initial` (by default undefined) until the first
 * result, and on a server. `deps` are the values in the query that may change, as in `useEffect`: when one of them changes, the query is
 * replaced, and its last result stays until the new one is there. When the store changes, the result is `initial` again. An error of
 * the store or of the query is thrown while rendering, for an error boundary.
 *
 * @example
 * const notes = useLive(db, { prefix: ['note', tag], limit: 20 }, [tag]); // [key, value][] | undefined
 * const note = useLive(db, ['note', id], [id]);
 * const open = useLive(db, { prefix: ['todo'], as: 'count' }, [], { initial: 0 });
 * const sum = useLive(db, async (view) => total(await view.getMany(['a', 'b'])), [], { gte: 'a', lte: 'b' });
 */
export function useLive<K, V, T, I extends T | undefined = undefined>(
  store: MaybeStore<K, V>,
  query: (view: Snapshot<K, V>) => T | PromiseLike<T>,
  deps: DependencyList,
  options?: KeyRange<K> & LiveOptions<I>,
): T | Extract<I, undefined>;
export function useLive<K, V, I extends number | undefined = undefined>(
  store: MaybeStore<K, V>,
  query: LiveCount<K>,
  deps: DependencyList,
  options?: LiveOptions<I>,
): number | Extract<I, undefined>;
export function useLive<K, V, I extends K[] | undefined = undefined>(
  store: MaybeStore<K, V>,
  query: LiveRange<K> & { as: 'keys' },
  deps: DependencyList,
  options?: LiveOptions<I>,
): K[] | Extract<I, undefined>;
export function useLive<K, V, I extends V[] | undefined = undefined>(
  store: MaybeStore<K, V>,
  query: LiveRange<K> & { as: 'values' },
  deps: DependencyList,
  options?: LiveOptions<I>,
): V[] | Extract<I, undefined>;
export function useLive<K, V, I extends [K, V][] | undefined = undefined>(
  store: MaybeStore<K, V>,
  query: LiveRange<K> & { as?: 'entries' | undefined },
  deps: DependencyList,
  options?: LiveOptions<I>,
): [K, V][] | Extract<I, undefined>;
export function useLive<K, V, I extends [K, V][] | K[] | V[] | undefined = undefined>(
  store: MaybeStore<K, V>,
  query: LiveRange<K>,
  deps: DependencyList,
  options?: LiveOptions<I>,
): [K, V][] | K[] | V[] | Extract<I, undefined>;
export function useLive<K, V>(
  store: MaybeStore<K, V>,
  query: K,
  deps: DependencyList,
  options?: LiveOptions<V | undefined>,
): V | undefined;
export function useLive(
  store: unknown,
  query: unknown,
  deps: DependencyList = [],
  options?: LiveOptions<unknown>,
): unknown {
  // `initial` is that of the first rendering: an array written in the call is another one at each.
  const live = useMemo(() => liveOf(store, options?.initial), [store]);
  // Effects run in the order of these calls, so that the first query is there when the subscription runs it.
  useEffect(() => live.update(query, options), [live, ...deps]);
  return useSource(live.source);
}

type Query = [query: unknown, options: unknown];

/** A store or a view, without its types. */
interface Queried {
  live(...query: Query): Live<unknown, Query>;
}

/** A live query over a store that may not be there yet. */
function liveOf(store: unknown, initial: unknown) {
  let query: Query;
  let live: Live<unknown, Query> | undefined;
  const start: Start = (next, error) => {
    let isOver = false;
    let end: (() => void) | undefined;
    const subscribe = (view: Queried | undefined): void => {
      if (isOver || view === undefined) return;
      live ??= view.live(...query);
      end = live.subscribe(next, error);
    };
    Promise.resolve(store as Queried | undefined)
      .then(subscribe)
      .catch(error);
    return () => {
      isOver = true;
      end?.();
    };
  };
  return {
    source: sourceOf(initial, initial, start),
    update(...next: Query): void {
      query = next;
      live?.update(...next);
    },
  };
}
