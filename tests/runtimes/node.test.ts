// The package as it ships, on Node: stores in memory, and the tests of stores in files that only Node needs.

import { execFile } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { syncBuiltinESMExports } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import threads from 'node:worker_threads';
import { expect, onTestFinished, test } from 'vitest';

/** The built entry; its types are those of the sources that it was built from. */
const entry: typeof import('varve/synchronous') = await import(
  /* @vite-ignore */ fileURLToPath(new URL('../../dist/synchronous.js', import.meta.url))
);

const page: typeof import('varve') = await import(
  /* @vite-ignore */ fileURLToPath(new URL('../../dist/index.js', import.meta.url))
);

test('varve runs its engine in the realm of the caller where there are no workers', async () => {
  const db = await page.open('runtime', { storage: 'memory' });
  await Promise.all([db.set('a', 1), db.set('b', 2)]);
  expect(await db.getMany(['a', 'b', 'c'])).toEqual([1, 2, undefined]);
  await expect(db.set('a', 2, { ifSequence: 7 })).rejects.toBeInstanceOf(page.VarveError);
  await db.close();
});

test('on a server a store without a storage is refused, and one in memory that was asked for opens', async () => {
  await expect(page.open('runtime')).rejects.toMatchObject({
    code: 'VARVE_UNSUPPORTED',
    message: expect.stringContaining('This is a server'),
  });
  const db = await page.open('runtime', { storage: 'memory' });
  expect(db.storage).toMatchObject({ kind: 'memory' });
  await db.close();
});

test('an error is of the same class in every entry', () => {
  expect(page.VarveError).toBe(entry.VarveError);
});

test('varve/synchronous keeps a store in memory', async () => {
  const db = await entry.open('runtime', { storage: 'memory', compactor: false });
  db.set(['note', 42], { title: 'Silt' });
  db.set(['note', 7], { title: 'Clay' });
  expect(db.get(['note', 42])).toEqual({ title: 'Silt' });
  expect([...db.keys({ prefix: ['note'] })]).toEqual([
    ['note', 7],
    ['note', 42],
  ]);
  expect(db.storage.kind).toBe('memory');
  await db.close();
});

test('closing a store does not wait for a compactor that has yet to start', async () => {
  const directory = mkdtempSync(join(tmpdir(), 'varve-node-'));
  const { Worker } = threads;
  let started = 0;
  threads.Worker = class extends Worker {
    constructor() {
      // It takes for ever to start.
      super('setInterval(() => undefined, 1000);', { eval: true });
      started++;
    }
  };
  syncBuiltinESMExports();
  onTestFinished(() => {
    threads.Worker = Worker;
    syncBuiltinESMExports();
    rmSync(directory, { recursive: true });
  });
  const { files } = await import(/* @vite-ignore */ fileURLToPath(new URL('../../dist/fs.js', import.meta.url)));
  for (let session = 0; session < 4; session++) {
    const db = await entry.open<string, number>('short', { storage: files(directory) });
    db.set('session', session);
    await new Promise(setImmediate);
    await db.close();
  }
  expect(started).toBeGreaterThan(0);
  const db = await entry.open<string, number>('short', { storage: files(directory) });
  expect(db.get('session')).toBe(3);
  await db.close();
});

test('a store in files has no more of them than the process can open, and 64 all the same', async () => {
  const directory = mkdtempSync(join(tmpdir(), 'varve-node-'));
  onTestFinished(() => rmSync(directory, { recursive: true }));
  const built = JSON.stringify(new URL('../../dist/fs.js', import.meta.url).href);
  const program = `
    import { files } from ${built};
    const device = await files(process.argv[1]).open('x', { lockTimeout: 0 });
    console.log(device.slotsMax);
    await device.closeAll();`;
  const shell = async (script: string): Promise<string> => {
    const { stdout } = await promisify(execFile)('sh', ['-c', script, process.execPath, program, directory]);
    return stdout.trim();
  };
  const slotsMax = async (limit: number): Promise<number> =>
    Number(await shell(`ulimit -n ${limit} && exec "$0" --input-type=module -e "$1" "$2"`));
  // No process may exceed the hard limit, which a container may have set low.
  const hard = await shell('ulimit -Hn');
  const most = hard === 'unlimited' ? 4000 : Math.min(4000, Number(hard));
  const expected = Math.max(64, Math.min(1000, Math.floor(most / 2)));
  expect([await slotsMax(400), await slotsMax(100), await slotsMax(most)]).toEqual([200, 64, expected]);
});
