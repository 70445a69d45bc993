// Short sessions of a store in files. Each process runs some of them and is killed in the last. Every write is accepted, nothing
// acknowledged is lost, and neither the files nor the log grow with the number of sessions. Each process also opens a store as a page
// does, and is refused. `VARVE_SESSIONS` sets how many sessions a runtime has, `VARVE_SEED` which, `VARVE_RUNTIME` in which runtime.

import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { bundleProgram, RUNTIMES, start } from '../support/runtimes.ts';
import { numberFrom, runSeed } from '../support/seed.ts';
import { type Census, checkBounded, Guestbook, summary } from '../support/visits.ts';

const SESSIONS = numberFrom('VARVE_SESSIONS', 500);
/** Sessions of a process; odd, so that the last ones alternate between acknowledged and not. */
const EACH = 25;
const LIMITS: Census = {
  records: 64,
  segments: 20,
  tables: 32,
  files: 64,
  bytes: (8 << 20) + 500 * SESSIONS,
  calls: 0,
};

/** The findings of a session. */
interface Came {
  readonly visit: number;
  readonly census: Census;
  readonly asked: readonly string[];
  readonly values: readonly (string | undefined)[];
  readonly entries: readonly (readonly [string, string])[];
}

const seed = runSeed('runtimes', 'life');
let parent: string;
let program: string;

beforeAll(async () => {
  parent = mkdtempSync(join(tmpdir(), 'varve-life-'));
  program = await bundleProgram('life.ts');
});

afterAll(() => rmSync(parent, { recursive: true, force: true }));

test.each(RUNTIMES)(
  'on $name, any number of short sessions leaves all that was acknowledged, and little else',
  async (runtime) => {
    const directory = join(parent, runtime.name);
    mkdirSync(directory);
    const guestbook = new Guestbook(seed);
    const censuses: Census[] = [];
    for (let from = 0; from < SESSIONS; from += EACH) {
      const running = start(runtime, program, directory, { seed, from, to: from + EACH });
      await running.line('stays');
      running.process.kill('SIGKILL');
      await running.ended;
      expect(running.lines).toContain('on a server: VARVE_UNSUPPORTED');
      const wrote = new Set(running.lines.filter((line) => line.startsWith('wrote ')));
      for (const line of running.lines.filter((one) => one.startsWith('came '))) {
        const { visit, census, asked, values, entries } = JSON.parse(line.slice('came '.length)) as Came;
        // JSON has null for an absent value.
        guestbook.check(asked.map((key, at) => [key, values[at] ?? undefined]));
        if (visit === from) guestbook.checkAll(entries);
        guestbook.ended(visit, wrote.has(`wrote ${visit}`));
        censuses.push(census);
      }
    }
    console.log(`${censuses.length} sessions on ${runtime.name}: ${summary(censuses)}`);
    expect(censuses).toHaveLength(Math.ceil(SESSIONS / EACH) * EACH);
    checkBounded(censuses, LIMITS);
  },
  60_000 + 1000 * SESSIONS,
);
