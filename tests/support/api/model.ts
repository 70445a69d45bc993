// The part of a store that single operations work on, as a map: it predicts the answer of each operation before the call.

import type { KeyRange } from 'varve';
import type { ConditionSpec, RangeSpec, ScanSpec, Single, WriteSpec } from './history.ts';
import { compareKeys, FIRST_NUMBERED, isIn, KEYS, PREFIXES } from './keys.ts';
import { refusalOf } from './refused.ts';
import { textOf, valueFrom } from './values.ts';

/** An entry, by the number of its key. */
export interface ModelEntry {
  readonly text: string;
  /** The last tick in which it lives. */
  readonly dies: number | undefined;
  /** The tag of the write that made it. */
  readonly tag: number;
}

/** Numbers of keys, in the order of the keys. */
const ORDER: readonly number[] = KEYS.map((_, i) => i).sort((a, b) => compareKeys(KEYS[a] as never, KEYS[b] as never));
export const KEY_TEXTS: readonly string[] = KEYS.map(textOf);

/** A range as a store takes it. */
export function rangeOf({ from, to, prefix }: RangeSpec): KeyRange {
  const range: KeyRange = { prefix: PREFIXES[prefix] };
  if (from !== undefined) range[from[0]] = KEYS[from[1]];
  if (to !== undefined) range[to[0]] = KEYS[to[1]];
  return range;
}

/** Numbers of the keys in a range, in order. */
export function keysIn(range: RangeSpec): number[] {
  const whole = rangeOf(range);
  return ORDER.filter((key) => isIn(KEYS[key] as never, whole));
}

/** The number of the key of one of many. */
export function numbered(i: number): number {
  return FIRST_NUMBERED + (i % (KEYS.length - FIRST_NUMBERED));
}

/** How many tags the writes of a call take. */
export function tagsOf(single: Single): number {
  if (single.op === 'batch') return single.writes.length;
  return single.op === 'setMany' ? single.count : single.op === 'write' ? 1 : 0;
}

/** The content of the store at one sequence. */
export class Moment {
  protected entries: Map<number, ModelEntry>;
  protected ticks: number;

  constructor(entries: Map<number, ModelEntry>, ticks: number) {
    this.entries = entries;
    this.ticks = ticks;
  }

  /** All entries, unaffected by later writes. */
  copied(): Map<number, ModelEntry> {
    return new Map(this.entries);
  }

  /** The entry of a key, unless it has expired. */
  live(key: number): ModelEntry | undefined {
    const entry = this.entries.get(key);
    return entry?.dies !== undefined && entry.dies < this.ticks ? undefined : entry;
  }

  /** Whether there was an entry that has expired: some readers may still see it. */
  isOver(key: number): boolean {
    return this.entries.has(key) && this.live(key) === undefined;
  }

  /** The results of a scan, as texts. */
  scan({ brings, range, reverse, limit }: ScanSpec): string[] {
    const keys = keysIn(range).filter((key) => this.live(key) !== undefined);
    if (reverse) keys.reverse();
    return keys
      .slice(0, limit)
      .map((key) => itemText(brings, KEY_TEXTS[key] as string, this.live(key)?.text as string));
  }

  count(range: RangeSpec): number {
    return keysIn(range).filter((key) => this.live(key) !== undefined).length;
  }

  text(key: number): string {
    return this.live(key)?.text ?? 'undefined';
  }

  entryText(key: number): string {
    const entry = this.live(key);
    return entry === undefined ? 'undefined' : `${entry.text} until ${entry.dies}`;
  }
}

/** The answer of a write; `existed` is that of a delete that asks whether its key was there. */
export function writtenText(existed: boolean | undefined): string {
  return existed === undefined ? 'written' : `written, existed: ${existed}`;
}

/** An item of a scan as a text. */
export function itemText(brings: ScanSpec['brings'], key: string, value: string): string {
  return brings === 'keys' ? key : brings === 'values' ? value : `${key}: ${value}`;
}

/** The present state, which writes change. */
export class Model extends Moment {
  /** The tags that keys had when the round began. */
  #begun = new Map<number, number | undefined>();

  constructor() {
    super(new Map(), 0);
  }

  get now(): number {
    return this.ticks;
  }

  /** Time passes. */
  tick(ticks: number): void {
    this.ticks += ticks;
  }

  /** The present content, unaffected by later writes. */
  moment(): Moment {
    return new Moment(this.copied(), this.ticks);
  }

  /** The writes after a point in the history are lost. */
  backTo(moment: Moment): void {
    this.entries = moment.copied();
  }

  /** From here on `current` is the content of the store. */
  beginRound(): void {
    this.#begun = new Map(KEYS.map((_, key) => [key, this.live(key)?.tag]));
  }

  /** Applies writes that belong together; the first has this tag. False where a condition is false. */
  write(writes: readonly WriteSpec[], tag: number): boolean {
    if (!writes.every((write) => write.op === 'deleteRange' || this.#holds(write.key, write.on))) return false;
    for (const [i, write] of writes.entries()) {
      if (write.op === 'deleteRange') for (const key of keysIn(write.range)) this.entries.delete(key);
      else if (write.op === 'delete') this.entries.delete(write.key);
      else this.#set(write.key, textOf(valueFrom(write.value, tag + i)), tag + i, write.life);
    }
    return true;
  }

  /** Entries of an export, over existing entries. */
  merge(other: Moment, keys: readonly number[]): void {
    for (const key of keys) {
      const entry = other.live(key);
      if (entry !== undefined) this.entries.set(key, entry);
    }
  }

  /** The answer of a call. If the call writes, it is applied. */
  answer(single: Single, tag: number): string {
    switch (single.op) {
      case 'write': {
        const { write } = single;
        const existed = write.op === 'delete' && write.asks ? this.live(write.key) !== undefined : undefined;
        return this.write([write], tag) ? writtenText(existed) : 'VARVE_CONFLICT';
      }
      case 'batch':
        return this.write(single.writes, tag) ? 'written' : 'VARVE_CONFLICT';
      case 'setMany':
        for (let i = 0; i < single.count; i++) {
          this.#set(numbered(single.from + i), textOf(valueFrom(single.value, tag + i)), tag + i, undefined);
        }
        return 'written';
      case 'get':
        return this.text(single.key);
      case 'has':
        return String(this.live(single.key) !== undefined);
      case 'getEntry':
        return this.entryText(single.key);
      case 'getMany':
        return single.keys.map((key) => this.text(key)).join('; ');
      case 'hasMany':
        return single.keys.map((key) => this.live(key) !== undefined).join('; ');
      case 'scan':
        return this.scan(single.scan).join('; ');
      case 'count':
        return String(this.count(single.range));
      case 'check':
        return '[]';
      case 'tooLong':
      case 'misspelt':
        return refusalOf(single);
      default:
        return 'done';
    }
  }

  #set(key: number, text: string, tag: number, life: number | undefined): void {
    this.entries.set(key, { text, tag, dies: life === undefined ? undefined : this.ticks + life });
  }

  #holds(key: number, on: ConditionSpec | undefined): boolean {
    if (on === undefined) return true;
    if (on === 'absent') return this.live(key) === undefined;
    return on === 'current' && this.live(key)?.tag === this.#begun.get(key);
  }
}
