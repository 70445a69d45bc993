/** How a store, or a view of a part of it, reads and writes its keys and values. */

import type { Place } from '../api.ts';
import { invalid } from '../errors.ts';
import { checkOptions, type Known } from '../options.ts';
import type { KeyCodec, ValueCodec, ViewOptions } from '../types.ts';
import { KeyFormat } from './key-format.ts';
import { formatOf, structured, type ValueFormat } from './values.ts';

/** The formats of a store or a view. */
export interface Formats<K, V> {
  readonly keys: KeyFormat<K>;
  readonly values: ValueFormat<V>;
  /** The same object for all views of one store. */
  readonly owner: object;
}

const VIEW: Known<ViewOptions<never, never>> = { keys: 1, values: 1 };

/** The formats of a store with these codecs. */
export function formatsOf<K, V>(
  owner: object,
  keys: KeyCodec<K> | undefined,
  values: ValueCodec<V> | undefined,
): Formats<K, V> {
  // Without a codec the caller chooses `V`, as with `structured.as<V>()`.
  return { owner, keys: new KeyFormat(keys), values: formatOf(values ?? (structured as unknown as ValueCodec<V>)) };
}

/** The formats of a part. Throws `VARVE_INVALID_ARGUMENT` for invalid options, and for a view of another store. */
export function formatsAt<K, V, K2, V2>(
  { owner, keys: outer, values: same }: Formats<K, V>,
  place: Place<K2, V2>,
  options: ViewOptions<K2, V2> = {},
): Formats<K2, V2> {
  checkOptions(options, VIEW);
  const { keys, values } = options;
  checkCodecs(options);
  if (Array.isArray(place)) {
    // Without a codec for values the caller chooses `V`.
    const format = values === undefined ? (same as unknown as ValueFormat<V2>) : formatOf(values);
    return { owner, keys: outer.at(place, keys), values: format };
  }
  const { formats } = Object(place) as { formats?: Formats<K2, V2> };
  if (formats?.owner !== owner || keys !== undefined || values !== undefined)
    throw invalid('at takes an array of keys, or a view of the same store without codecs: it has its own.');
  return formats;
}

/** Throws unless they are codecs, or undefined. */
export function checkCodecs<K, V>({ keys, values }: ViewOptions<K, V>): void {
  for (const [option, codec] of Object.entries({ keys, values })) {
    if (codec === undefined) continue;
    const { encode, decode }: Partial<ValueCodec<never>> = Object(codec);
    if (typeof encode !== 'function' || typeof decode !== 'function')
      throw invalid(`${option} is a codec: an object with a name, encode(value) and decode(bytes).`);
  }
}
