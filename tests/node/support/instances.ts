/**
 * How many engine instances there are. A test file mocks the loader of the engine with `counting`.
 */

import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

type Load = typeof import('../../../js/src/wasm/instantiate.ts');

const memories: WeakRef<WebAssembly.Memory>[] = [];

setFlagsFromString('--expose-gc');
const collectGarbage = runInNewContext('gc') as () => void;

/** The loader, with its instances counted. */
export function counting(real: Load): Load {
  const instantiate: Load['instantiate'] = (module) => {
    const engine = real.instantiate(module);
    memories.push(new WeakRef(engine.exports.memory));
    return engine;
  };
  return { ...real, instantiate };
}

/** How many instances were made. */
export function made(): number {
  return memories.length;
}

/** How many of them are still referenced. */
export async function alive(): Promise<number> {
  // A weak reference that was dereferenced keeps its target until the turn ends.
  await new Promise((resolve) => setTimeout(resolve));
  collectGarbage();
  return memories.filter((memory) => memory.deref() !== undefined).length;
}
