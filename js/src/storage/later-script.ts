/**
 * Scripts that the engine worker loads when it first needs them.
 *
 * Invariant: such a script exports nothing, because some bundlers drop the exports of a file that is only named by its URL. It puts
 * what it makes on the global object. It has its own copies of the modules that it shares with the worker. So its errors are known by
 * their names: a `SlotError` is known everywhere, the others are made anew by the caller, a `VarveError` with `ownError`.
 */

import { VarveError } from '../errors.ts';

/** Where a script puts what it makes. */
export interface LaterPlace<T> {
  made?: T;
}

/** The place of a script, under a name that the whole realm shares. */
export function placeOf<T>(name: string): LaterPlace<T> {
  const realm = globalThis as { [key: symbol]: LaterPlace<T> | undefined };
  const key = Symbol.for(name);
  realm[key] ??= {};
  return realm[key];
}

/**
 * A function that loads a script, once, and resolves with what it made. After a failure the next call tries again. In the error, `use` is
 * the purpose of the script.
 */
export function laterScript<T>(place: LaterPlace<T>, use: string, url: () => URL): () => Promise<T> {
  let loading: Promise<T> | undefined;
  const run = async (): Promise<T> => {
    const { href } = url();
    try {
      // Bundlers copy the file that the URL names, and leave the import alone.
      await import(/* webpackIgnore: true */ /* @vite-ignore */ href);
      if (place.made === undefined) throw new Error('it is another script');
      return place.made;
    } catch (cause) {
      const why = cause instanceof Error ? cause.message : String(cause);
      throw new VarveError(
        'VARVE_UNAVAILABLE',
        `The script for ${use} could not be loaded from ${href} (${why}). Serve the file there.`,
        { cause },
      );
    }
  };
  return () => {
    loading ??= run().catch((error: unknown) => {
      loading = undefined;
      throw error;
    });
    return loading;
  };
}

/** An error of a script: a `VarveError` is made anew, as one of this worker's class. */
export function ownError(error: unknown): unknown {
  return (error as Partial<VarveError> | undefined)?.name === 'VarveError'
    ? VarveError.fromWire(error as VarveError)
    : error;
}
