/** The options of `open`. Types only. */

import type { CommonOpenOptions, Key, UpgradeVersions } from '../types.ts';
import type { Upgrade } from './transaction.ts';

/** Options of `open`. `K` and `V` follow the codecs. */
export interface OpenOptions<K = Key, V = unknown> extends CommonOpenOptions<K, V, Upgrade<K, V>> {
  /**
   * Whether `get`, `getMany`, `has`, `peek` and iterators over short ranges are answered in this tab, when they were read or written
   * here shortly before. Default: true. The answers are the same as without the cache: a write of another tab waits until this tab
   * has dropped the old value. If this tab does not respond (it is busy or frozen), that takes 2.25 seconds at most. The cache takes
   * at most an eighth of `memoryBytes`, besides those.
   */
  cache?: boolean | undefined;
  /**
   * Called when another tab opens the store with a higher `version`, before it upgrades the data; again if that upgrade fails
   * and another one begins. From then on this tab's writes reject with `VARVE_VERSION`, until the upgrade fails; its reads go on, and may
   * find data of the new version. `oldVersion` is the version of this tab. It is the `versionchange` event of IndexedDB, except that the
   * upgrade does not wait for this tab to close the store.
   *
   * @example
   * await open('notes', { version: 1, onVersionChange: () => location.reload() });
   */
  onVersionChange?: ((versions: UpgradeVersions) => void) | undefined;
  /**
   * The engine worker: the URL of its script, also on another origin, or a function that creates the worker. Default: the script
   * beside this module.
   */
  worker?: string | URL | ((name: string) => Worker) | undefined;
}
