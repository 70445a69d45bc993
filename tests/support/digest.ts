// Compares two stores whose reads should be the same, in a browser or on a server.

import type { Key, Store } from 'varve';

/**
 * How many entries, and a hash of every key, value and expiry, each as text. Its source is also run in pages, so it uses
 * nothing from outside.
 */
export async function digest(db: Store<Key, unknown>): Promise<string> {
  const text = (value: unknown, above: readonly unknown[] = []): string => {
    const inner = (part: unknown): string => text(part, [...above, value]);
    if (above.includes(value) && typeof value === 'object') return `the one ${above.indexOf(value)} above`;
    if (Array.isArray(value)) return `[${value.map(inner).join()}]`;
    if (ArrayBuffer.isView(value))
      return `${value.constructor.name} ${inner(value.buffer.slice(value.byteOffset, value.byteOffset + value.byteLength))}`;
    if (value instanceof ArrayBuffer) return `bytes ${new Uint8Array(value)}`;
    if (value instanceof Date) return `date ${value.getTime()}`;
    if (value instanceof RegExp || value instanceof Error) return `${value.constructor.name} ${value}`;
    if (value instanceof Map || value instanceof Set) return `${value.constructor.name} ${inner([...value])}`;
    if (typeof value === 'object' && value !== null) return `{${inner(Object.entries(value))}}`;
    return `${typeof value} ${Object.is(value, -0) ? '-0' : String(value)}`;
  };
  const lines: string[] = [];
  for await (const [key, value] of db) {
    lines.push(`${text(key)} = ${text(value)} until ${(await db.getEntry(key))?.expiresAt?.getTime()}`);
  }
  const hash = await crypto.subtle.digest('SHA-256', new TextEncoder().encode(lines.join('\n')));
  return `${lines.length} entries ${Array.from(new Uint8Array(hash)).join('-')}`;
}
