/**
 * The query of a request, read strictly.
 *
 * Invariant: a request with a parameter that is unknown, given twice or not decodable is refused, so that a misspelt bound
 * never widens a range. (`URLSearchParams` would replace bytes that it cannot decode, and so name another key.)
 */

import { KEY_BYTES_MAX } from '../codec/plain-key.ts';
import { checkDurability } from '../options.ts';
import type { Durability, Key, KeyRange } from '../types.ts';
import { DATE_FORM, dateOf, parseKey } from './json-key.ts';
import { malformed } from './refusal.ts';

/** The parameters of one request. The endpoint takes each parameter that it knows. */
export class Query {
  readonly #parameters = new Map<string, string>();
  readonly #keyBytesMax: number;

  /** Reads the part of a URL after the `?`. */
  constructor(search: string, keyBytesMax: number) {
    this.#keyBytesMax = keyBytesMax;
    for (const part of search.replace(/^\?/, '').split('&')) {
      if (part === '') continue;
      const equals = part.indexOf('=');
      const name = decoded(equals < 0 ? part : part.slice(0, equals));
      if (this.#parameters.has(name)) throw malformed(`The parameter ${shown(name)} is given twice.`);
      this.#parameters.set(name, equals < 0 ? '' : decoded(part.slice(equals + 1)));
    }
  }

  /** Takes a parameter as it is. */
  text(name: string): string | undefined {
    const text = this.#parameters.get(name);
    this.#parameters.delete(name);
    return text;
  }

  /** Takes a key, written as JSON. */
  key(name: string, bytesMax = this.#keyBytesMax): Key | undefined {
    const text = this.text(name);
    return text === undefined ? undefined : parseKey(text, bytesMax);
  }

  /** Takes a number above 0 (`whole`: an integer from 0). */
  number(name: string, whole: boolean): number | undefined {
    const text = this.text(name);
    if (text === undefined) return undefined;
    const number = /^[0-9]{1,15}(\.[0-9]{1,15})?$/.test(text) ? Number(text) : Number.NaN;
    if (whole ? !Number.isInteger(number) : !(number > 0)) {
      throw malformed(`${name} is ${whole ? 'an integer from 0' : 'a number above 0'}, not ${shown(text)}.`);
    }
    return number;
  }

  /** Takes a date, as `toISOString` returns it. */
  date(name: string): Date | undefined {
    const text = this.text(name);
    const date = text === undefined ? undefined : dateOf(text);
    if (text !== undefined && date === undefined)
      throw malformed(`${name} is a date as ${DATE_FORM}, not ${shown(text)}.`);
    return date;
  }

  /** Takes `true` or `false`. */
  flag(name: string): boolean | undefined {
    const text = this.text(name);
    if (text === undefined || text === 'true' || text === 'false')
      return text === undefined ? undefined : text === 'true';
    throw malformed(`${name} is true or false, not ${shown(text)}.`);
  }

  /** Takes `durability`. */
  durability(): Durability | undefined {
    const level = this.text('durability');
    checkDurability(level);
    return level as Durability | undefined;
  }

  /** Takes the bounds of a range. A page continues after a key of the store, which can be longer than those that requests may name. */
  range(): KeyRange {
    const bound = (name: string): Key | undefined => this.key(name, KEY_BYTES_MAX);
    const [gt, gte, lt, lte] = [bound('gt'), bound('gte'), bound('lt'), bound('lte')];
    return { gt, gte, lt, lte, prefix: prefixOf(this.key('prefix')) };
  }

  /** Refuses the request if a parameter was not taken. */
  end(): void {
    for (const name of this.#parameters.keys()) throw malformed(`The parameter ${shown(name)} is unknown here.`);
  }
}

/** A key that can be a prefix. */
export function prefixOf(prefix: Key | undefined): KeyRange['prefix'] {
  const usable =
    prefix === undefined || typeof prefix === 'string' || prefix instanceof Uint8Array || Array.isArray(prefix);
  if (!usable) throw malformed('A prefix is an array, a string or {"bytes": base64}.');
  return prefix as KeyRange['prefix'];
}

/** A part of a query or a path, with its percent-encoding decoded. */
export function decoded(text: string, isPath = false): string {
  try {
    return decodeURIComponent(isPath ? text : text.replaceAll('+', ' '));
  } catch {
    throw malformed('The URL has a percent-encoding that is no UTF-8.');
  }
}

function shown(text: string): string {
  return JSON.stringify(text.slice(0, 40));
}
