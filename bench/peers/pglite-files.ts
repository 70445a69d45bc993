/**
 * How PGlite is started in a worker: its files from the page's own folder, its data on its OPFS access handle pool.
 *
 * Invariant: when a database is closed, nothing of it opens a file any more. With relaxed durability the library looks
 * after its pool behind the calls, and by itself would go on after closing, with files that it has closed.
 */

import type { PGlite } from '@electric-sql/pglite';
import type { OpfsAhpFS } from '@electric-sql/pglite/opfs-ahp';
import { assetUrl, compiledAsset } from './assets.ts';

/** The name of this peer's folder among the peers' files. */
export const PGLITE = 'pglite';
/** The folder of the origin private file system below which its stores lie. */
export const PGLITE_FOLDER = 'bench-pglite';

/** The files of Postgres itself: fetched once in each thread. */
let bundle: Promise<Blob> | undefined;

/** The pool, waiting for what goes on behind before it is closed. */
function waiting(Pool: typeof OpfsAhpFS): typeof OpfsAhpFS {
  return class WaitingPool extends Pool {
    #behind: Promise<void> = Promise.resolve();
    #closed = false;

    override syncToFs(relaxed?: boolean): Promise<void> {
      if (!this.#closed) this.#behind = super.syncToFs(relaxed);
      return this.#behind;
    }

    override async closeFs(): Promise<void> {
      this.#closed = true;
      await this.#behind;
      await super.closeFs();
    }
  };
}

/** Starts Postgres over the store `name` in the calling thread, which must be a dedicated worker. */
export async function startPglite(name: string, relaxed: boolean): Promise<PGlite> {
  bundle ??= fetch(assetUrl(PGLITE, 'pglite.data')).then((response) => response.blob());
  const [library, pool, pgliteWasmModule, initdbWasmModule, fsBundle] = await Promise.all([
    import('@electric-sql/pglite'),
    import('@electric-sql/pglite/opfs-ahp'),
    compiledAsset(PGLITE, 'pglite.wasm'),
    compiledAsset(PGLITE, 'initdb.wasm'),
    bundle,
  ]);
  const Pool = waiting(pool.OpfsAhpFS);
  return library.PGlite.create({
    fs: new Pool(`${PGLITE_FOLDER}/${name}`),
    relaxedDurability: relaxed,
    pgliteWasmModule,
    initdbWasmModule,
    fsBundle,
  });
}
