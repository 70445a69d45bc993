/** Opens a store over a fake engine: without a cache, so that the engine gets every read. */

import { openStore } from '../../../js/src/store/open.ts';
import type { OpenOptions } from '../../../js/src/store/open-options.ts';
import type { Store } from '../../../js/src/store/store.ts';
import type { Key } from '../../../js/src/types.ts';
import { FakeEngine } from './fake-engine.ts';

/** A store and the engine behind it. */
export async function openFake<K = Key, V = unknown>(
  options: OpenOptions<K, V> = {},
): Promise<{ db: Store<K, V>; engine: FakeEngine }> {
  const engine = new FakeEngine();
  const db = await openStore('test', { cache: false, ...options }, () => engine);
  return { db, engine };
}
