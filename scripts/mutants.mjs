// `npm run test:mutants -- [--only TEXT] [--rust] [--list] [--no-control]`: puts faults that were found from outside back into a copy
// of the tree, one at a time. Then it runs a general suite, which must fail: a fuzz, a life, a full storage, hostile input. It does
// not run the test that was written for the fault. `--only` takes mutants whose fault or name has that text; `--rust` takes those of
// the engine as well, which compiles the engine anew for each. Invariant: an edit matches exactly once; a copy that does not build,
// or a suite that fails without the mutant, is no catch.

import { spawn } from 'node:child_process';
import {
  closeSync,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { parseArgs } from 'node:util';
import { setup } from './setup.mjs';
import { capture, env as environment, main, Problem, root, run } from './tools.mjs';

/** @typedef {readonly [file: string, find: string, replace: string]} Edit */
/** @typedef {{ suite: string, filter: string, env?: Record<string, string> }} General a suite of vitest, part of a file's name */
/** @typedef {{ fault: number, name: string, by: General, edits: readonly Edit[] }} Mutant */

/**
 * The model fuzz in one place, from fresh seeds, for so long if nothing is found.
 * @param {string} place
 * @param {number} [seconds]
 * @returns {General}
 */
const fuzz = (place, seconds = 60) => ({
  suite: place.startsWith('chromium') ? 'browser' : 'js',
  filter: 'api-fuzz',
  env: { VARVE_API_PLACE: place, VARVE_API_SECONDS: String(seconds), VARVE_API_SHRINK_SECONDS: '0' },
});
const HOSTILE = { suite: 'js', filter: 'hostile' };
const FULL = { suite: 'js', filter: 'full-storage' };

const SRC = 'js/src';
/** @type {readonly Mutant[]} */
const MUTANTS = [
  {
    fault: 2,
    name: 'a refusal takes along buffered writes that are logged',
    by: FULL,
    edits: [
      [
        `${SRC}/synchronous/turn-log.ts`,
        'if (this.#buffered !== 0 && this.#host.stats().sequence < this.#buffered) this.#poison(cause);',
        'if (this.#buffered !== 0) this.#poison(cause);',
      ],
    ],
  },
  {
    fault: 3,
    name: 'a commit that is refused gets no room from the reserve',
    by: FULL,
    edits: [
      [
        `${SRC}/storage/buffered/room.ts`,
        "if (this.#reserve === undefined || !isFull(error) || only === 'nothing') throw error;",
        'if (this.#reserve === undefined || isFull(error) || only === "nothing") throw error;',
      ],
    ],
  },
  {
    fault: 4,
    name: 'a document is encoded when its turn comes',
    by: fuzz('files'),
    edits: [
      [
        `${SRC}/collections/store-collection.ts`,
        ': this.#change(key, () => taken, options);',
        ': this.#change(key, () => this.#taker.take(given), options);',
      ],
    ],
  },
  {
    fault: 5,
    name: 'an import leaves indexes as they were',
    by: fuzz('files', 120),
    edits: [[`${SRC}/portable/import.ts`, 'if (derivation !== undefined) marked.add(derivation);', 'void derivation;']],
  },
  {
    fault: 6,
    name: 'a path is believed to lead to what was opened there',
    by: fuzz('files'),
    edits: [
      [
        `${SRC}/storage/fs/place.ts`,
        'return !found.isSymbolicLink() && knownBy.every((number) => found[number] === file[number]);',
        'return knownBy.every((number) => found[number] === file[number]) || true;',
      ],
      [
        `${SRC}/storage/fs/place.ts`,
        '  } catch {\n    return false;\n  }\n}\n\nfunction notSlot',
        '  } catch {\n    return true;\n  }\n}\n\nfunction notSlot',
      ],
    ],
  },
  {
    fault: 7,
    name: 'bytes are asked how many they are',
    by: HOSTILE,
    edits: [[`${SRC}/codec/intrinsics.ts`, 'const count = lengthOf.call(bytes);', 'const count = bytes.length;']],
  },
  {
    fault: 7,
    name: 'a Map is asked for its size',
    by: HOSTILE,
    edits: [[`${SRC}/codec/cbor-writer.ts`, 'const size = mapSize.call(value);', 'const size = value.size;']],
  },
  {
    fault: 8,
    name: 'an update drops the expiry',
    by: fuzz('files'),
    edits: [
      [
        `${SRC}/transaction/lifetime.ts`,
        'return { expiresIn: kept.expiresIn, expiresAt: kept.expiresAt };',
        'return { expiresIn: kept && undefined, expiresAt: kept && undefined };',
      ],
    ],
  },
  {
    fault: 10,
    name: 'updates of one key take no turns, and give up after ten attempts',
    by: fuzz('opfs'),
    edits: [
      [
        `${SRC}/transaction/turns.ts`,
        'await untilAborted(before ?? Promise.resolve(), signal);',
        'await untilAborted(Promise.resolve(), signal);',
      ],
      [`${SRC}/transaction/turns.ts`, 'ATTEMPTS_MAX = 100;', 'ATTEMPTS_MAX = 10;'],
    ],
  },
  {
    fault: 11,
    name: 'a value may take a GiB',
    by: fuzz('opfs'),
    edits: [[`${SRC}/codec/values.ts`, 'VALUE_BYTES_MAX = 2 ** 27;', 'VALUE_BYTES_MAX = 2 ** 30;']],
  },
  {
    fault: 12,
    name: 'a follower waits for a round that is over',
    by: fuzz('files', 240),
    edits: [
      [
        `${SRC}/changes/feed.ts`,
        'if (round !== this.#round || reader.isOver) return Promise.resolve();',
        'if (reader.isOver) return Promise.resolve();',
      ],
    ],
  },
  {
    fault: 12,
    name: 'a check reads slots that contain no table, which may be lent since',
    by: { suite: 'js', filter: 'upkeep', env: { VARVE_UPKEEP_SECONDS: '90' } },
    edits: [[`${SRC}/tools/check.ts`, 'length === 0 ? new Uint8Array() : await', 'await']],
  },
  {
    fault: 13,
    name: 'each follower asks for a page of its own',
    by: fuzz('opfs'),
    edits: [[`${SRC}/changes/feed.ts`, 'if (asked?.since === since) return asked.page;', 'void asked;']],
  },
  {
    fault: 13,
    name: 'followers of different keys do not look together',
    by: fuzz('opfs'),
    edits: [[`${SRC}/changes/feed.ts`, 'DIFFERENT_MAX = 8;', 'DIFFERENT_MAX = 1e9;']],
  },
  {
    fault: 14,
    name: 'an object that is no Date fails with any error',
    by: HOSTILE,
    edits: [
      [
        `${SRC}/codec/intrinsics.ts`,
        '  try {\n    return getTime.call(value as Date);\n  } catch {\n    return undefined;\n  }',
        '  return getTime.call(value as Date);',
      ],
    ],
  },
  {
    fault: 15,
    name: 'JSON is taken as JSON.parse reads it',
    by: HOSTILE,
    edits: [[`${SRC}/http/exact-json.ts`, '  checkTokens(text);\n', '  void checkTokens;\n']],
  },
  {
    fault: 16,
    name: 'every folder is listed as a store',
    by: fuzz('files'),
    edits: [
      [`${SRC}/storage/fs/files.ts`, 'return entriesIn(path).some(isOurs);', 'return entriesIn(path).length >= 0;'],
    ],
  },
  {
    fault: 16,
    name: 'a store is deleted, and its folder stays without an error',
    by: fuzz('files'),
    edits: [[`${SRC}/storage/fs/files.ts`, 'if (others.length > 0) throw kept(', 'if (others.length > 0) void kept(']],
  },
  {
    fault: 17,
    name: 'a service worker joins a store in OPFS as long as a page has it open',
    by: { suite: 'browser', filter: 'tests/browser/life', env: { VARVE_SESSIONS: '200' } },
    edits: [
      [
        `${SRC}/share/membership.ts`,
        "if (report.storage.kind === 'opfs' && !hasSyncHandles) return this.#fail(outOfReach(name));",
        'void [hasSyncHandles, outOfReach];',
      ],
    ],
  },
  {
    fault: 18,
    name: 'on a server stores are opened as in a browser',
    by: { suite: 'runtimes', filter: 'tests/runtimes/life', env: { VARVE_SESSIONS: '50' } },
    edits: [[`${SRC}/storage/open-device.ts`, 'if (isServer()) throw onServer(name);', 'void [isServer, onServer];']],
  },
  {
    fault: 19,
    name: 'unknown options are accepted',
    by: fuzz('files'),
    edits: [
      [`${SRC}/options.ts`, 'if (!Object.hasOwn(known, name))', "if (!Object.hasOwn(known, name) && name === '')"],
    ],
  },
  {
    fault: 19,
    name: 'junk is reported as a damaged export',
    by: { suite: 'js', filter: 'export-import' },
    edits: [
      [
        `${SRC}/portable/block.ts`,
        'if (!isExport(bytes)) throw notExport();',
        "if (!isExport(bytes)) throw damaged(0, 'it does not begin as one does');",
      ],
    ],
  },
  {
    fault: 20,
    name: 'a live query begins without its first value',
    by: fuzz('files'),
    edits: [[`${SRC}/store/following.ts`, 'let value = initial;', 'let value = undefined as T;']],
  },
  {
    fault: 20,
    name: 'a query that is replaced loses its value',
    by: fuzz('files'),
    edits: [
      [
        `${SRC}/store/following.ts`,
        '      run = prepare(...query);\n',
        '      run = prepare(...query);\n      value = initial;\n',
      ],
    ],
  },
];

/** @type {readonly Mutant[]} */
const OF_THE_ENGINE = [
  {
    fault: 0,
    name: 'no number of segments is folded',
    by: { suite: 'js', filter: 'tests/node/life', env: { VARVE_SESSIONS: '3000' } },
    edits: [
      [
        'crates/varve/src/store/recover.rs',
        'const SEGMENTS_MAX: usize = 16;',
        'const SEGMENTS_MAX: usize = usize::MAX;',
      ],
      [
        'crates/varve/src/store/jobs/inline.rs',
        ' || self.segments.len() >= SEGMENTS_FOLDED;',
        ' || self.segments.len() == usize::MAX;',
      ],
    ],
  },
  {
    fault: 1,
    name: 'a full storage is not purged',
    by: { suite: 'browser', filter: 'full-storage' },
    edits: [
      [
        'crates/varve/src/store/jobs/choose.rs',
        'if self.jobs.purge.is_wanted && !is_flushing',
        'if self.jobs.purge.is_wanted && self.fresh.next_table == 0 && !is_flushing',
      ],
    ],
  },
  {
    fault: 9,
    name: 'a slot contains one file',
    by: { suite: 'runtimes', filter: 'tests/runtimes/turn', env: { VARVE_TURN_MEGABYTES: '100' } },
    edits: [['crates/varve/src/storage/slot_header.rs', 'CLAIMS_MAX: usize = 40;', 'CLAIMS_MAX: usize = 1;']],
  },
];

/** Files of the tree, with changes that are not committed. */
function tracked() {
  const listed = capture('git', ['-C', root, 'ls-files', '--cached', '--others', '--exclude-standard']);
  if (listed === undefined) throw new Problem('The tree is copied by what git knows of it: run this in a clone.');
  return listed.split('\n').filter((file) => file !== '' && existsSync(join(root, file)));
}

/** Files from a build that are slow to make anew. */
const BUILT = ['js/pkg', 'build/varve-tools.wasm', 'build/wasm.stamp'];

/** A copy of the tree to break things in. */
class Copy {
  path = mkdtempSync(join(tmpdir(), 'varve-mutants-'));

  constructor() {
    for (const file of [...tracked(), ...BUILT]) {
      mkdirSync(dirname(join(this.path, file)), { recursive: true });
      cpSync(join(root, file), join(this.path, file), { recursive: true });
    }
    symlinkSync(join(root, 'node_modules'), join(this.path, 'node_modules'));
  }

  /** @param {Mutant} mutant */
  mutate({ edits, name }) {
    for (const [file, find, replace] of edits) {
      const path = join(this.path, file);
      const source = readFileSync(path, 'utf8');
      const matches = source.split(find).length - 1;
      if (matches !== 1) throw new Problem(`"${name}" matches ${matches} times in ${file}: bring it up to date.`);
      // Not with a pattern, in which $ has a special meaning.
      writeFileSync(
        path,
        source.replace(find, () => replace),
      );
    }
  }

  /** @param {Mutant} mutant */
  restore({ edits }) {
    for (const file of [...edits.map(([file]) => file), ...BUILT]) {
      rmSync(join(this.path, file), { recursive: true, force: true });
      cpSync(join(root, file), join(this.path, file), { recursive: true });
    }
  }

  /**
   * Runs a suite here; returns the first failure, if any.
   * @param {General} general
   * @returns {Promise<string | undefined>}
   */
  async firstFailure({ suite, filter, env = {} }) {
    const report = join(this.path, 'test-results', `${suite}.json`);
    rmSync(report, { force: true });
    const target = { CARGO_TARGET_DIR: join(root, 'target', 'mutants') };
    const args = [join(this.path, 'scripts', 'test.mjs'), suite, filter];
    const output = openSync(join(this.path, 'suite.log'), 'w');
    const child = spawn('node', args, {
      cwd: this.path,
      env: { ...environment, ...target, ...env },
      stdio: ['ignore', output, output],
    });
    // A signal that ends this command is meant for its child process as well.
    const end = () => {
      child.kill('SIGTERM');
      this.remove();
      process.exit(1);
    };
    process.once('SIGTERM', end).once('SIGINT', end);
    const isGreen = await new Promise((resolve) => child.on('close', (code) => resolve(code === 0)));
    process.off('SIGTERM', end).off('SIGINT', end);
    closeSync(output);
    if (!existsSync(report)) {
      const last = readFileSync(join(this.path, 'suite.log'), 'utf8').trimEnd().split('\n').slice(-8).join('\n');
      throw new Problem(`Nothing was run: the copy does not build.\n${last}`);
    }
    const { numPassedTests, testResults } = JSON.parse(readFileSync(report, 'utf8'));
    const all = testResults.flatMap((/** @type {{ assertionResults: object[] }} */ file) => file.assertionResults);
    const failed = all.find((/** @type {{ status: string }} */ { status }) => status === 'failed');
    if (failed !== undefined) return `${failed.fullName}: ${failed.failureMessages[0]}`;
    if (isGreen && numPassedTests > 0) return undefined;
    throw new Problem(`No test of ${suite} ${filter} failed, and yet it did not pass: did it run?`);
  }

  remove() {
    rmSync(this.path, { recursive: true, force: true });
  }
}

/** @param {General} general */
const nameOf = ({ suite, filter, env = {} }) => [suite, filter, env['VARVE_API_PLACE'] ?? ''].join(' ').trim();

/**
 * Tries one mutant; returns the outcome, in words.
 * @param {Copy} copy
 * @param {Mutant} mutant
 */
async function tried(copy, mutant) {
  copy.mutate(mutant);
  try {
    const failure = await copy.firstFailure(mutant.by);
    return failure === undefined ? { isCaught: false, outcome: 'SURVIVED' } : { isCaught: true, outcome: failure };
  } catch (error) {
    if (!(error instanceof Problem)) throw error;
    return { isCaught: false, outcome: `NOT TRIED: ${error.message}` };
  } finally {
    copy.restore(mutant);
  }
}

await main(async () => {
  const { values } = parseArgs({
    options: {
      only: { type: 'string' },
      rust: { type: 'boolean' },
      list: { type: 'boolean' },
      'no-control': { type: 'boolean' },
    },
  });
  const { only } = values;
  const all = values.rust ? [...OF_THE_ENGINE, ...MUTANTS] : MUTANTS;
  const mutants = all.filter(({ fault, name }) => only === undefined || only === String(fault) || name.includes(only));
  if (mutants.length === 0) throw new Problem('There is no such mutant; `--list` has them all.');
  if (values.list) {
    for (const { fault, name, by } of mutants) console.log(`${fault}\t${name}\t${nameOf(by)}`);
    return;
  }
  await setup({ wasm: true, browser: mutants.some(({ by }) => by.suite === 'browser') });
  await run('node', ['scripts/build.mjs']);
  const copy = new Copy();
  try {
    /** @type {{ mutant: Mutant, isCaught: boolean, outcome: string }[]} */
    const results = [];
    const controlled = new Set();
    for (const mutant of mutants) {
      const name = nameOf(mutant.by);
      if (!values['no-control'] && !controlled.has(name)) {
        const failure = await copy.firstFailure(mutant.by);
        if (failure !== undefined) throw new Problem(`${name} fails without a mutant: ${failure}`);
        controlled.add(name);
      }
      const result = await tried(copy, mutant);
      results.push({ mutant, ...result });
      console.log(`${mutant.fault} ${mutant.name}: ${result.outcome.split('\n')[0]}\n`);
    }
    console.log('fault\tmutant\tsuite\tcaught by');
    for (const { mutant, outcome } of results) {
      console.log(`${mutant.fault}\t${mutant.name}\t${nameOf(mutant.by)}\t${outcome.split('\n')[0]?.slice(0, 160)}`);
    }
    const missed = results.filter(({ isCaught }) => !isCaught);
    console.log(`${results.length - missed.length} passed, ${missed.length} failed`);
    if (missed.length > 0) process.exitCode = 1;
  } finally {
    copy.remove();
  }
});
