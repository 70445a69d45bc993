// Exports as they ship: a store that Chromium wrote to OPFS is read on Node, and one of Node's in Chromium, with the same
// answers to all reads.

import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { newProfile, type Profile } from './support/profile.ts';

/** The built entry; its types are those of the sources that it was built from. */
const varveNode: typeof import('varve') = await import(
  /* @vite-ignore */ fileURLToPath(new URL('../../dist/index.js', import.meta.url))
);

let profile: Profile;

beforeAll(async () => {
  profile = await newProfile();
});

afterAll(() => profile.close());

/** A hash of every key, value and expiry, each as text: run in both places, so it may use nothing from outside. */
async function digest(db: import('varve').Store<import('varve').Key, unknown>): Promise<string> {
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
    lines.push(`${text(key)} = ${text(value)} until ${(await db.getEntry(key))?.expires?.getTime()}`);
  }
  const hash = await crypto.subtle.digest('SHA-256', new TextEncoder().encode(lines.join('\n')));
  return `${lines.length} entries ${Array.from(new Uint8Array(hash)).join('-')}`;
}

test('a store goes from Chromium to Node and back, and is read the same', async () => {
  const { page, errors } = await profile.openPage();
  await page.evaluate(`globalThis.digest = ${digest}`);
  const written = await page.evaluate(async () => {
    const db = await varve.open('from', { version: 5 });
    await db.setMany(everyType());
    for (let i = 0; i < 3000; i++) {
      const value = i % 3 === 0 ? new Uint8Array(i) : { n: i, at: new Date(i), text: 'x'.repeat(i % 100) };
      await db.set(['n', i], value, { expiresIn: i % 5 === 0 ? 3_600_000 + i : undefined });
      if (i === 1500) await db.compact();
    }
    const bytes = new Uint8Array(
      await new Response(db.export() as ReadableStream<Uint8Array<ArrayBuffer>>).arrayBuffer(),
    );
    const hash = await (globalThis as unknown as { digest: (of: typeof db) => Promise<string> }).digest(db);
    const kind = db.storage.kind;
    await db.close();
    let binary = '';
    for (const byte of bytes) binary += String.fromCharCode(byte);
    return { kind, hash, base64: btoa(binary) };
  });
  expect(written.kind).toBe('opfs');
  const bytes = new Uint8Array(Buffer.from(written.base64, 'base64'));

  const node = await varveNode.open('here', { storage: 'memory' });
  const report = await node.import(new Blob([bytes]).stream());
  expect(report.bytes).toBe(bytes.length);
  expect(await digest(node)).toBe(written.hash);
  const again = new Uint8Array(
    await new Response(node.export() as ReadableStream<Uint8Array<ArrayBuffer>>).arrayBuffer(),
  );
  await node.close();

  const back = await page.evaluate(async (base64) => {
    const bytes = Uint8Array.from(atob(base64), (char) => char.charCodeAt(0));
    const db = await varve.open('back');
    const file = new Blob([bytes]);
    const cut = db.import(file.slice(0, bytes.length / 2).stream()).catch((error: { code: string }) => error.code);
    const code = await cut;
    await db.close();
    const reopened = await varve.open('back');
    const { resumedAt } = await reopened.import((offset) => file.slice(offset).stream());
    const hash = await (globalThis as unknown as { digest: (of: typeof db) => Promise<string> }).digest(reopened);
    await reopened.close();
    const upgraded = await varve.open('back', { version: 5, upgrade: () => Promise.reject(new Error('upgraded')) });
    await upgraded.close();
    return { code, resumedAt, hash };
  }, Buffer.from(again).toString('base64'));
  expect(back.code).toBe('VARVE_CORRUPT');
  expect(back.resumedAt).toBeGreaterThan(72);
  expect(back.hash).toBe(written.hash);
  expect(errors).toEqual([]);
});
