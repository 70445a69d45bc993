// Writes that come faster than a store can flush them: each must wait for room and then be accepted, however little memory there is.

import type { Key, Store } from 'varve';
import type { SyncStore } from 'varve/synchronous';

/** How a flood writes: all sets at once, or loops that run beside each other and await each set. */
export interface FloodPlan {
  readonly loops: number | undefined;
  readonly writes: number;
  readonly bytes: number;
}

const KEYS = 'flood';

/** Bytes that do not compress, different for each write. */
function noiseOf(write: number, bytes: number): Uint8Array {
  const words = new Uint32Array(Math.ceil(bytes / 4));
  let state = Math.imul(write + 1, 0x9e3779b1);
  for (let i = 0; i < words.length; i++) {
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    words[i] = state;
  }
  return new Uint8Array(words.buffer, 0, bytes);
}

function isValueOf(found: unknown, write: number, bytes: number): boolean {
  if (!(found instanceof Uint8Array) || found.length !== bytes) return false;
  const expected = noiseOf(write, bytes);
  for (let i = 0; i < bytes; i++) if (found[i] !== expected[i]) return false;
  return true;
}

/** Writes, reads everything back and deletes it again. Throws if a write is refused, or is not read back. */
export async function flood(
  db: Store<Key, unknown> | SyncStore<Key, unknown>,
  { loops, writes, bytes }: FloodPlan,
): Promise<void> {
  const refusals = new Map<string, number>();
  const set = async (write: number): Promise<void> => {
    try {
      await db.set([KEYS, write], noiseOf(write, bytes), { durability: 'relaxed' });
    } catch (error) {
      const refusal = `${(error as { code?: unknown }).code}: ${(error as Error).message}`;
      refusals.set(refusal, (refusals.get(refusal) ?? 0) + 1);
    }
  };
  const all = Array.from({ length: writes }, (_, write) => write);
  const loop = async (first: number, step: number): Promise<void> => {
    for (let write = first; write < writes; write += step) await set(write);
  };
  await Promise.all(loops === undefined ? all.map(set) : Array.from({ length: loops }, (_, i) => loop(i, loops)));
  for (const [refusal, count] of refusals) throw new Error(`${count} of ${writes} writes were refused: ${refusal}`);
  let found = 0;
  for await (const [key, value] of db.entries({ prefix: [KEYS] })) {
    const write = (key as readonly Key[])[1];
    if (write !== found) throw new Error(`of the writes of a flood ${found} is gone: ${write} follows`);
    if (!isValueOf(value, found++, bytes)) throw new Error(`the write ${write} of a flood has another value`);
  }
  if (found !== writes) throw new Error(`of ${writes} writes of a flood ${found} are there`);
  await db.deleteRange({ prefix: [KEYS] });
}
