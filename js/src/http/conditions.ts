/**
 * ETags, and the conditions of requests (RFC 9110, section 13).
 *
 * The ETag of an entry is its sequence in quotes: `"17"`. Every write has a sequence of its own, so equal ETags of one store
 * mean the same write. The compressed form of an entry has `"17-gzip"`: it is another representation of the same write. So is the CBOR
 * of a value that has JSON or is bytes, `"17-cbor"`.
 *
 * Invariant: if the condition of a write names one state (`If-Match: "17"`, `If-None-Match: *`), the engine checks it when it
 * applies the write. Any other condition is checked on an entry that was read; the write is applied only if that entry is still
 * there.
 */

import { malformed } from './refusal.ts';

/** One ETag of a header: the sequence that it stands for, undefined if it is not an ETag of this store. */
interface Tag {
  readonly weak: boolean;
  /** As it was given, without the mark of weak tags. */
  readonly text: string;
  readonly sequence: number | undefined;
  /** Of the CBOR of a value that has another form. */
  readonly isOther: boolean;
}

type Tags = '*' | readonly Tag[];

/** The conditions of a request. */
export class Conditions {
  readonly #match: Tags | undefined;
  readonly #noneMatch: Tags | undefined;

  constructor(headers: Headers) {
    this.#match = parse('If-Match', headers.get('if-match'));
    this.#noneMatch = parse('If-None-Match', headers.get('if-none-match'));
  }

  /** Whether the request has no conditions. */
  get none(): boolean {
    return this.#match === undefined && this.#noneMatch === undefined;
  }

  /** The one state that a write requires: a sequence, or null for no entry; undefined if one state cannot express the conditions. */
  get state(): number | null | undefined {
    if (this.#match === undefined) return this.#noneMatch === '*' ? null : undefined;
    const [tag, ...others] = this.#match === '*' || this.#noneMatch !== undefined ? [] : this.#match;
    return others.length === 0 && tag?.weak === false ? tag.sequence : undefined;
  }

  /** Whether If-Match allows the request, for an entry with this sequence (null: no entry). Weak tags never match. */
  matches(sequence: number | null): boolean {
    if (this.#match === undefined) return true;
    if (sequence === null) return false;
    return this.#match === '*' || this.#match.some((tag) => !tag.weak && tag.sequence === sequence);
  }

  /** Whether If-None-Match allows the request. */
  differs(sequence: number | null): boolean {
    return this.held(sequence) === undefined;
  }

  /**
   * The ETag by which If-None-Match refuses the request; undefined if it allows it. A read then gets the response 304 with this ETag,
   * so a cache knows which of its responses is still valid, the plain or the compressed one. With `isOther` only tags of that form count.
   */
  held(sequence: number | null, isOther?: boolean): string | undefined {
    if (this.#noneMatch === undefined || sequence === null) return undefined;
    if (this.#noneMatch === '*') return tagOf(sequence, isOther);
    const isSame = (tag: Tag): boolean => tag.sequence === sequence && tag.isOther === (isOther ?? tag.isOther);
    return this.#noneMatch.find(isSame)?.text;
  }
}

/** The ETag of a sequence; `isOther`: of the CBOR of a value that has another form. */
export function tagOf(sequence: number, isOther = false): string {
  return `"${sequence}${isOther ? '-cbor' : ''}"`;
}

/** The ETag of the compressed form of an entry, from that of the plain form. */
export function gzipTagOf(tag: string): string {
  return tag.replace(/"$/, '-gzip"');
}

/** An item of a list, with the comma behind it. Commas in quotes are of a tag. */
const ITEM = /(?:"[^"]*"|[^,"]+|")*,/g;
const TAG = /^(W\/)?"([\x21\x23-\x7e\x80-\xff]*)"$/;
const TAGS_MAX = 100;

function parse(name: string, header: string | null): Tags | undefined {
  if (header === null) return undefined;
  if (header.trim() === '*') return '*';
  const parts = Array.from(`${header},`.matchAll(ITEM), ([item]) => item.slice(0, -1).trim());
  if (parts.length > TAGS_MAX) throw malformed(`${name} has more than ${TAGS_MAX} tags.`);
  return parts.map((part) => {
    const tag = TAG.exec(part);
    if (tag === null) throw malformed(`${name} is * or a list of ETags such as "17", quotes included.`);
    const content = tag[2] as string;
    const [, digits, other] = /^([1-9][0-9]{0,15})(-cbor)?(-gzip)?$/.exec(content) ?? [];
    const sequence = Number(digits);
    const known = Number.isSafeInteger(sequence) ? sequence : undefined;
    return { weak: tag[1] !== undefined, text: `"${content}"`, sequence: known, isOther: other !== undefined };
  });
}
