/** How PGlite is started in a worker: its files from the page's own folder, its data on its OPFS access handle pool. */

import type { PGlite } from '@electric-sql/pglite';
import { assetUrl, compiledAsset } from './assets.ts';

/** The name of this peer's folder among the peers' files. */
export const PGLITE = 'pglite';
/** The folder of the origin private file system below which its stores lie. */
export const PGLITE_FOLDER = 'bench-pglite';

/** The files of Postgres itself: fetched once in each thread. */
let bundle: Promise<Blob> | undefined;

/** Starts Postgres over the store `name` in the calling thread, which must be a dedicated worker. */
export async function startPglite(name: string, relaxed: boolean): Promise<PGlite> {
  bundle ??= fetch(assetUrl(PGLITE, 'pglite.data')).then((response) => response.blob());
  const [{ PGlite: Library }, { OpfsAhpFS }, pgliteWasmModule, initdbWasmModule, fsBundle] = await Promise.all([
    import('@electric-sql/pglite'),
    import('@electric-sql/pglite/opfs-ahp'),
    compiledAsset(PGLITE, 'pglite.wasm'),
    compiledAsset(PGLITE, 'initdb.wasm'),
    bundle,
  ]);
  return Library.create({
    fs: new OpfsAhpFS(`${PGLITE_FOLDER}/${name}`),
    relaxedDurability: relaxed,
    pgliteWasmModule,
    initdbWasmModule,
    fsBundle,
  });
}
