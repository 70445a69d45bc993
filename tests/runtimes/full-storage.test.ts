// A full disk under a store in files: a file system of 30 MiB in memory. Mounting one needs permission; without it those
// tests are skipped. And a limit on the size of files, which any user may set.

import { execFileSync } from 'node:child_process';
import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, onTestFinished, test } from 'vitest';
import type { steps } from '../support/full-steps.ts';
import { type FullDriver, liveFull } from '../support/full-storage.ts';
import { bundleProgram, RUNTIMES, type Running, type Runtime, start } from '../support/runtimes.ts';

const ROOM_BYTES = 30 * 1024 * 1024;
const FILE_BYTES = 3 * 1024 * 1024;

const directory = mkdtempSync(join(tmpdir(), 'varve-full-'));
const whyNot = mounted();
let program: string;

beforeAll(async () => {
  program = await bundleProgram('full.ts');
});

afterAll(() => {
  if (whyNot === undefined) execFileSync('umount', ['--lazy', directory]);
  rmSync(directory, { recursive: true, force: true });
});

/** Makes the small file system; returns the reason when that is impossible. */
function mounted(): string | undefined {
  if (process.platform !== 'linux') return 'only Linux mounts a file system in memory as this test does';
  try {
    execFileSync('mount', ['-t', 'tmpfs', '-o', `size=${ROOM_BYTES}`, 'tmpfs', directory], { stdio: 'pipe' });
    return undefined;
  } catch (error) {
    return `a file system cannot be mounted here: ${(error as Error).message}`;
  }
}

/** A process of a runtime that has the store open. */
class FullProcess implements FullDriver {
  readonly #runtime: Runtime;
  readonly #where: string;
  readonly #isSync: boolean;
  #running: Running | undefined;

  constructor(runtime: Runtime, where = directory, isSync = false) {
    this.#runtime = runtime;
    this.#where = where;
    this.#isSync = isSync;
  }

  get roomBytes(): number {
    return ROOM_BYTES;
  }

  async open(): Promise<void> {
    this.#running = start(this.#runtime, program, this.#where, { isSync: this.#isSync });
    await this.#running.line('open');
  }

  async close(): Promise<void> {
    this.#say({ step: 'close', rest: [] });
    const ended = await this.#running?.ended;
    if (ended?.code !== 0) throw new Error(ended?.errors);
  }

  async kill(): Promise<void> {
    this.#running?.process.kill('SIGKILL');
    await this.#running?.ended;
  }

  async call(step: keyof typeof steps, ...rest: unknown[]): Promise<never> {
    const running = this.#running as Running;
    const answered = running.lines.length;
    this.#say({ step, rest });
    return JSON.parse(await running.lineAt(answered)) as never;
  }

  #say(line: object): void {
    this.#running?.process.stdin?.write(`${JSON.stringify(line)}\n`);
  }
}

const KINDS = RUNTIMES.flatMap((runtime) => [
  { name: runtime.name, runtime, isSync: false },
  { name: `${runtime.name}, varve/synchronous`, runtime, isSync: true },
]);

if (whyNot !== undefined) console.warn(`The small file system is left out: ${whyNot}.`);
test.skipIf(whyNot !== undefined).each(KINDS)(
  'on $name a full disk is used, refuses, keeps, deletes and continues',
  async ({ name, runtime, isSync }) => {
    onTestFinished(() => rmSync(join(directory, 'full'), { recursive: true, force: true }));
    await liveFull(new FullProcess(runtime, directory, isSync), {
      name: `files, ${name}`,
      usable: 0.8,
      backShare: isSync ? 0.8 : 0.65,
    });
  },
  300_000,
);

/** A runtime whose processes write no file longer than so many bytes. The signal for that is ignored, the error is not. */
function limited({ name, command, arguments: given }: Runtime, bytes: number): Runtime {
  const script = `trap '' XFSZ; ulimit -f ${bytes / 512}; exec "$0" "$@"`;
  return { name, command: '/bin/sh', arguments: (where) => ['-c', script, command, ...given(where)] };
}

/** A store in files of limited length: its room is that of the files that it has when it is full. */
class FullFiles extends FullProcess {
  readonly #where: string;
  #files = 0;

  constructor(runtime: Runtime, where: string) {
    super(limited(runtime, FILE_BYTES), where);
    this.#where = where;
  }

  override get roomBytes(): number {
    this.#files ||= readdirSync(join(this.#where, 'full')).filter((name) => /slot/.test(name)).length;
    return this.#files * FILE_BYTES;
  }
}

test.each(RUNTIMES)(
  'on $name files that may not be longer are a full disk',
  async (runtime) => {
    const apart = mkdtempSync(join(tmpdir(), 'varve-limited-'));
    onTestFinished(() => rmSync(apart, { recursive: true, force: true }));
    await liveFull(new FullFiles(runtime, apart), {
      name: `files of 3 MiB, ${runtime.name}`,
      // A busy runtime may have made a spare file more when the first one could not grow.
      usable: 0.4,
      backShare: 0.8,
    });
  },
  300_000,
);
