/**
 * Values as JSON, where JSON can express all of them; otherwise the nearest JSON, and then they are only shown.
 * Invariant: `isExact` is true only for text that reads back as the same value. No value of a store makes it fail.
 */

import { isJson } from '../../http/media.ts';

/** How many objects are written once more where a value has them in several places: the ways through a graph have no end. */
const AGAIN_MAX = 1000;

/** The objects that were written, and how many may still be written once more. */
interface Written {
  readonly all: Set<unknown>;
  left: number;
}

/** A value as text. */
interface ValueText {
  readonly text: string;
  /** Whether JSON expresses all of it. */
  readonly isExact: boolean;
}

/** A value as JSON in several lines. */
export function valueText(value: unknown): ValueText {
  return { text: JSON.stringify(nearestJson(value), null, 2), isExact: isJson(value) };
}

/** A value in one line, at most `length` characters of it. */
export function valueLine(value: unknown, length: number): string {
  const text = JSON.stringify(nearestJson(value));
  return text.length > length ? `${text.slice(0, length - 1)}\u2026` : text;
}

/** Whether JSON expresses all of a value. */
export function isExact(value: unknown): boolean {
  return isJson(value);
}

/** The JSON value nearest to a value. */
export function nearestJson(
  value: unknown,
  above: readonly unknown[] = [],
  written: Written = { all: new Set(), left: AGAIN_MAX },
): unknown {
  if (typeof value === 'bigint') return `${value}n`;
  if (typeof value === 'number') return Number.isFinite(value) ? value : String(value);
  if (value === undefined) return null;
  if (typeof value !== 'object' || value === null) return value;
  if (above.includes(value)) return '(itself)';
  if (written.all.has(value) && --written.left < 0) return '(again)';
  written.all.add(value);
  const inner = (item: unknown): unknown => nearestJson(item, [...above, value], written);
  if (Array.isArray(value)) return value.map(inner);
  if (value instanceof Map) return { Map: [...value].map(inner) };
  if (value instanceof Set) return { Set: [...value].map(inner) };
  if (value instanceof Date) return Number.isNaN(value.getTime()) ? 'Invalid Date' : value.toISOString();
  if (value instanceof RegExp || value instanceof Error) return String(value);
  if (ArrayBuffer.isView(value)) return { [value.constructor.name]: `${value.byteLength} bytes` };
  if (value instanceof ArrayBuffer) return { ArrayBuffer: `${value.byteLength} bytes` };
  return Object.fromEntries(Object.entries(value).map(([name, item]) => [name, inner(item)]));
}
