// One engine exports a store, another imports it, and so on in a circle: all reads return the same everywhere. The bytes go
// through the test.

import { afterAll, expect, test } from 'vitest';
import type { Engine } from './support/engine.ts';
import { ENGINES, Session } from './support/engines.ts';

/** The hash of the entries that an engine read, and the export that it passed on. */
interface Passed {
  readonly hash: string;
  readonly base64: string;
}

const sessions: Session[] = [];

afterAll(() => Promise.all(sessions.map((session) => session.end())));

/** Starts an engine; `run` gets a page of it. */
async function inEngine(engine: Engine, base64: string | null): Promise<Passed> {
  const session = await Session.start(engine);
  sessions.push(session);
  const tab = await session.browser.openTab();
  const passed = await tab.evaluate(async (given) => {
    const db = await varve.open('passed on', { version: 5 });
    if (given === null) {
      await db.setMany(everyType());
      for (let i = 0; i < 1500; i++) {
        const value = i % 3 === 0 ? new Uint8Array(i) : { n: i, at: new Date(i), text: 'x'.repeat(i % 100) };
        await db.set(['n', i], value, { expiresIn: i % 5 === 0 ? 3_600_000 + i : undefined });
        if (i === 700) await db.compact();
      }
    } else {
      const bytes = Uint8Array.from(atob(given), (char) => char.charCodeAt(0));
      await db.import(new Blob([bytes]).stream());
    }
    await db.close();
    const again = await varve.open('passed on', { version: 5, upgrade: () => Promise.reject(new Error('upgraded')) });
    const hash = await digestOf(again);
    const chunks: BlobPart[] = [];
    for (const reader = again.export().getReader(); ; ) {
      const { done, value } = await reader.read();
      if (done) break;
      chunks.push(value as Uint8Array<ArrayBuffer>);
    }
    await again.close();
    const bytes = new Uint8Array(await new Blob(chunks).arrayBuffer());
    return { hash, base64: btoa(Array.from(bytes, (byte) => String.fromCharCode(byte)).join('')) };
  }, base64);
  expect(tab.errors).toEqual([]);
  return passed;
}

test(`a store goes through ${ENGINES.map(({ name }) => name).join(', ')} and back, and is read the same`, async () => {
  const [first] = ENGINES as [Engine, ...Engine[]];
  const written = await inEngine(first, null);
  let { base64 } = written;
  for (const engine of [...ENGINES.slice(1), first]) {
    const passed = await inEngine(engine, base64);
    expect([engine.name, passed.hash]).toEqual([engine.name, written.hash]);
    ({ base64 } = passed);
  }
});
