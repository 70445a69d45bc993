/**
 * Finds the shard of a key by rendezvous hashing (Thaler and Ravishankar, "Using name-based mappings to increase hit rates", 1998).
 * The name of each shard gives the key a score; the shard with the highest score has the key. So a new shard takes its share,
 * one in n keys, from all others, and no key moves between the others.
 *
 * The hash is MurmurHash3 (x86, 32 bits; Appleby, public domain), its finalizer mixing key and name.
 *
 * Invariant: the shard of a key depends on its encoded bytes and on the set of names, not on their order. It never changes with a
 * version of this package: a test compares it with results that were computed once.
 */

const C1 = 0xcc9e2d51;
const C2 = 0x1b873593;

/** The place of keys among named shards. */
export class Rendezvous {
  readonly names: readonly string[];
  readonly #seeds: Uint32Array;

  constructor(names: readonly string[]) {
    this.names = [...names].sort();
    this.#seeds = Uint32Array.from(this.names, (name) => murmur3(new TextEncoder().encode(name)));
  }

  /** The index in `names` of the shard that has a key, by the key's bytes. */
  shardOf(key: Uint8Array): number {
    const hash = murmur3(key);
    let best = 0;
    let highest = -1;
    for (const [index, seed] of this.#seeds.entries()) {
      const score = mixed(hash ^ seed);
      if (score > highest) {
        highest = score;
        best = index;
      }
    }
    return best;
  }
}

/** MurmurHash3 of bytes, x86 variant, 32 bits. */
export function murmur3(bytes: Uint8Array): number {
  const tail = bytes.length & 3;
  const end = bytes.length - tail;
  let hash = 0;
  for (let i = 0; i < end; i += 4) {
    hash ^= scrambled(wordAt(bytes, i, 4));
    hash = Math.imul((hash << 13) | (hash >>> 19), 5) + 0xe6546b64;
  }
  if (tail > 0) hash ^= scrambled(wordAt(bytes, end, tail));
  return mixed(hash ^ bytes.length);
}

function wordAt(bytes: Uint8Array, at: number, length: number): number {
  let word = 0;
  for (let i = 0; i < length; i++) word |= (bytes[at + i] as number) << (8 * i);
  return word;
}

function scrambled(word: number): number {
  const once = Math.imul(word, C1);
  return Math.imul((once << 15) | (once >>> 17), C2);
}

/** The finalizer: every bit of the input changes half of the bits, and no two inputs have the same result. */
function mixed(hash: number): number {
  let h = hash;
  h = Math.imul(h ^ (h >>> 16), 0x85ebca6b);
  h = Math.imul(h ^ (h >>> 13), 0xc2b2ae35);
  return (h ^ (h >>> 16)) >>> 0;
}
