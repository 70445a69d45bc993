/** The files of a store of Varve's, weighed from outside. */

import type { DiskUse } from '../core/engine.ts';
import { folderUse } from './opfs-folder.ts';

/** What the store's folder holds, as the file system counts it. */
export function storeFiles(name: string): Promise<DiskUse> {
  return folderUse('varve', name);
}
