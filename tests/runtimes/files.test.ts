// Stores in files on every server runtime that is here, as the package ships. Deno runs with the permissions that the
// README states and no other.

import { mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { bundleProgram, RUNTIMES, type Running, type Runtime, run, start } from '../support/runtimes.ts';
import { hashOf } from './support/folder-hash.ts';

let directory: string;
let programs: { compactor: string; contract: string; hold: string; lost: string; nowhere: string; roundTrip: string };
const started: Running[] = [];

beforeAll(async () => {
  directory = mkdtempSync(join(tmpdir(), 'varve-runtimes-'));
  programs = {
    compactor: await bundleProgram('compactor.ts'),
    contract: await bundleProgram('contract.ts'),
    hold: await bundleProgram('hold.ts'),
    lost: await bundleProgram('lost.ts'),
    nowhere: await bundleProgram('nowhere.ts'),
    roundTrip: await bundleProgram('round-trip.ts'),
  };
});

afterAll(() => {
  for (const { process } of started) process.kill('SIGKILL');
  rmSync(directory, { recursive: true, force: true });
});

describe.each(RUNTIMES)('on $name', (runtime) => {
  test('files keep the contract of storages', async () => {
    const { clauses, failures } = await run<{ clauses: number; failures: string[] }>(
      runtime,
      programs.contract,
      directory,
    );
    expect(failures).toEqual([]);
    expect(clauses).toBeGreaterThan(20);
  });

  test('tables are merged, nothing is written after a close, and an open store keeps no process alive', async () => {
    const where = { directory: join(directory, `${runtime.name} merged`) };
    for (let round = 0; round < 3; round++) {
      const report = await run(runtime, programs.compactor, directory, { ...where, round });
      expect(report).toEqual({ hasFlushed: true, hash: hashOf(join(where.directory, 'merged')) });
    }
    // In a thread, except on Deno.
    const lendable = runtime.name !== 'deno';
    const report = await run(runtime, programs.compactor, directory, where);
    expect(report).toEqual({ lendable, problems: [], wrong: 0 });
  });

  test('a store whose folder is taken away acknowledges nothing more, and the store that is opened in its place is whole', async () => {
    const where = { directory: join(directory, `${runtime.name} lost`) };
    const each = { codes: ['VARVE_POISONED', 'VARVE_POISONED'], isMerged: true, ok: true, wrong: 0 };
    const report = await run(runtime, programs.lost, directory, where);
    expect(report).toEqual({ removed: each, renamed: each, hasOldOne: true });
  });

  test('a store without the option storage is refused, not made in memory', async () => {
    const refused = { code: 'VARVE_UNSUPPORTED', message: expect.stringContaining('This is a server') };
    expect(await run(runtime, programs.nowhere, directory)).toEqual([refused, refused, refused]);
  });

  test('a slot that is a symbolic link is not followed', async () => {
    const where = { directory: join(directory, `${runtime.name} links`) };
    expect(await run(runtime, programs.hold, directory, { ...where, lockTimeout: 0 })).toEqual({ opened: true });
    const [slot, target] = [join(where.directory, 'held', 'slot-0003'), join(directory, `${runtime.name} precious`)];
    writeFileSync(target, 'of somebody else');
    rmSync(slot);
    symlinkSync(target, slot);
    const refused = await run(runtime, programs.hold, directory, { ...where, lockTimeout: 0 });
    expect(refused).toMatchObject({ opened: false, code: 'VARVE_UNSUPPORTED' });
    expect(readFileSync(target, 'utf8')).toBe('of somebody else');
  });

  test('varve and varve/synchronous share a store in files, which every runtime reads, an encrypted one, too; and in memory', async () => {
    const earlier = RUNTIMES.slice(0, RUNTIMES.indexOf(runtime)).map(({ name }) => name);
    const before = earlier.flatMap((name) => [
      [name, 'async'],
      [name, 'sync'],
    ]);
    const shared = { directory: join(directory, 'shared'), name: runtime.name };
    const report = await run(runtime, programs.roundTrip, directory, shared);
    const keys = [...before, [runtime.name, 'async'], [runtime.name, 'sync']].sort();
    expect(report).toEqual({
      keys,
      is: true,
      ok: true,
      problems: [],
      entries: keys.length,
      stores: [`copy by ${runtime.name}`, 'secret', 'shared'],
      recovery: 'clean',
      inMemory: ['memory', 1, 'memory', 2],
      secret: [...earlier, runtime.name].sort(),
      refused: ['VARVE_KEY', 'VARVE_KEY'],
      secretOk: true,
      withoutKey: true,
    });
  });

  test.each(RUNTIMES)('a store that it has open is refused to $name, which gets it after a kill', async (other) => {
    const holder = await hold(runtime);
    const refused = await run(other, programs.hold, directory, { lockTimeout: 0 });
    expect(refused).toMatchObject({ opened: false, code: 'VARVE_LOCKED' });
    expect(refused).toMatchObject({ message: expect.stringContaining(`Process ${holder.process.pid} `) });
    await kill(holder);
    if (other.name === 'deno' && runtime.name !== 'deno') {
      // Deno may check whether a process of another runtime runs only with --allow-run.
      expect(await run(other, programs.hold, directory, { lockTimeout: 0 })).toMatchObject({ code: 'VARVE_LOCKED' });
      const allowed = (path: string): string[] => [...other.arguments(path), '--allow-run'];
      const opened = await run({ ...other, arguments: allowed }, programs.hold, directory, { lockTimeout: 0 });
      expect(opened).toEqual({ opened: true });
    } else expect(await run(other, programs.hold, directory, { lockTimeout: 0 })).toEqual({ opened: true });
  });
});

/** A process that has the store open. */
async function hold(runtime: Runtime): Promise<Running> {
  const holder = start(runtime, programs.hold, directory, { lockTimeout: 0, hold: true });
  started.push(holder);
  expect(JSON.parse(await holder.line('{'))).toEqual({ opened: true });
  return holder;
}

async function kill(holder: Running): Promise<void> {
  holder.process.kill('SIGKILL');
  await holder.ended;
}
