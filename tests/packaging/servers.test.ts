// Projects of Node, Bun and Deno: the README's example with files, run twice; the second run finds what the first one left. And a server
// that renders pages imports what the pages import.

import { mkdirSync } from 'node:fs';
import { expect, test } from 'vitest';
import { readmeBlock } from '../support/readme.ts';
import { RUNTIMES } from '../support/runtimes.ts';
import { Project } from './support/project.ts';

const REPORT = `
  const runs = ((await db.get('runs')) ?? 0) + 1;
  await db.set('runs', runs);
  console.log(JSON.stringify({ runs, a: await db.get('a'), storage: db.storage.kind, recovery: db.recovery.state }));
  await db.close();
`;

/** The imports of a page. They must not use anything that a server lacks, nor keep its process alive. */
const IMPORTED = `
  const used = [];
  for (const name of ['Worker', 'SharedWorker', 'BroadcastChannel', 'MessageChannel', 'fetch', 'indexedDB', 'setInterval']) {
    globalThis[name] = new Proxy(function () {}, {
      apply: () => used.push(name),
      construct: () => ({ used: used.push(name) }),
      get: () => used.push(name),
    });
  }
  for (const entry of ['', '/inline', '/synchronous', '/collections']) await import('varve' + entry);
  console.log(JSON.stringify(used));
`;

/** The command to run: for Deno, the one in the README, with no more permissions. */
function commandOf(name: string, script: string): string[] {
  if (name !== 'deno') return [script];
  const [, given = ''] = /^deno (run .*) main\.ts$/m.exec(readmeBlock('', 'deno run')) ?? [];
  expect(given).toContain('--allow-write=./data');
  return [...given.split(' '), script];
}

test.for(RUNTIMES.map(({ name }) => name))('%s keeps a store in files', async (name) => {
  const { command } = RUNTIMES.find((runtime) => runtime.name === name) ?? { command: '' };
  const example = readmeBlock('ts', "from 'varve/fs'");
  const code = name === 'deno' ? example.replaceAll("from 'varve", "from 'npm:varve") : example;
  const project = Project.forTest({ 'main.js': code + REPORT });
  mkdirSync(project.path('data'));
  for (const runs of [1, 2]) {
    const said = await project.run(command, ...commandOf(name, 'main.js'));
    const recovery = runs === 1 ? 'new' : 'clean';
    expect(JSON.parse(said)).toEqual({ runs, a: 1, storage: 'files', recovery });
  }
  expect(project.list('data')).toContain('notes');
  expect(await project.run(project.path('node_modules/.bin/varve'), 'get', 'data/notes', 'runs')).toBe('2\n');
});

test('a server that renders a page imports the package without touching a worker', async () => {
  const project = Project.forTest({ 'page.js': IMPORTED });
  expect(JSON.parse(await project.run('node', 'page.js'))).toEqual([]);
});
