// The HTTP handler and exports of the built package, on Node and on the real deno, bun and workerd. All make the same requests and must
// get the same results.

import { type ChildProcess, spawn } from 'node:child_process';
import { mkdirSync, readFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import { createInterface } from 'node:readline';
import { pathToFileURL } from 'node:url';
import { build } from 'esbuild';
import { Miniflare } from 'miniflare';
import { afterEach, beforeAll, expect, test } from 'vitest';
import { root } from '../../scripts/tools.mjs';
import { RUNTIMES } from '../support/runtimes.ts';

const DIST = join(root, 'dist');
const OUT = join(root, 'build', 'test-tour');
/** The permissions of each server: for Deno, read the package and listen. */
const GIVEN = {
  node: [],
  bun: ['run'],
  deno: ['run', '--no-prompt', '--no-config', '--no-lock', `--allow-read=${DIST}`, '--allow-net=127.0.0.1'],
};
const SERVERS = RUNTIMES.filter(({ name }) => name !== 'node');

/** The results of the tour on Node. */
let seen: unknown[];

/** Bundles a fixture; the built package is either bundled in, or left as it is, beside its workers. */
async function bundle(fixture: string, takesIn: boolean): Promise<string> {
  const outfile = join(OUT, fixture.replace(/ts$/, 'mjs'));
  await build({
    entryPoints: [join(root, 'tests/runtimes/fixtures', fixture)],
    outfile,
    bundle: true,
    format: 'esm',
    target: 'es2022',
    external: ['*.wasm', 'node:*'],
    plugins: [
      {
        name: 'built-package',
        setup: ({ onResolve }) => {
          onResolve({ filter: /^varve(\/\w+)?$/ }, ({ path }) => {
            const file = join(DIST, `${path.split('/')[1] ?? 'index'}.js`);
            return takesIn ? { path: file } : { path: `./${relative(OUT, file)}`, external: true };
          });
        },
      },
    ],
    logLevel: 'error',
  });
  return outfile;
}

beforeAll(async () => {
  mkdirSync(OUT, { recursive: true });
  const { tour } = (await import(
    /* @vite-ignore */ pathToFileURL(await bundle('tour.ts', false)).href
  )) as typeof import('./fixtures/tour.ts');
  const { open }: typeof import('varve') = await import(/* @vite-ignore */ pathToFileURL(join(DIST, 'index.js')).href);
  const [db, other] = [await open('tour', { storage: 'memory' }), await open('other', { storage: 'memory' })];
  // As text: the other runtimes also return it as text.
  seen = JSON.parse(JSON.stringify(await tour(db, other))) as unknown[];
  await db.close();
  await other.close();
});

test('on Node it sees the right answers', () => {
  const statuses = seen.slice(0, 18).map((stop) => (stop as unknown[])[2]);
  expect(statuses).toEqual([200, 200, 200, 200, 304, 412, 201, 200, 200, 400, 200, 200, 200, 400, 415, 403, 404, 200]);
  expect((seen[18] as unknown[])[0]).toBe(401);
  const [code, report, bytes, isSame] = seen.slice(19);
  expect([code, isSame]).toEqual(['VARVE_CORRUPT', true]);
  expect(report).toMatchObject({ entries: 2003, bytes });
});

let server: ChildProcess | undefined;
afterEach(() => server?.kill('SIGKILL'));

test.each(SERVERS)('on $name it sees the same, and its server takes the handler', async ({ name, command }) => {
  const program = await bundle('tour-server.ts', false);
  server = spawn(command, [...GIVEN[name], program], { stdio: ['ignore', 'pipe', 'inherit'] });
  const lines = createInterface({ input: server.stdout! })[Symbol.asyncIterator]();
  const line = async (): Promise<string> => String((await lines.next()).value);
  expect(JSON.parse(await line())).toEqual(seen);
  const url = (await line()).trim();
  const headers = { authorization: 'Bearer secret' };
  const response = await fetch(`${url}/kv/a%2Fb`, { headers });
  expect([response.status, response.headers.get('etag'), await response.json()]).toEqual([
    200,
    '"1"',
    { title: 'Silt' },
  ]);
  expect((await fetch(`${url}/kv/a%2Fb`)).status).toBe(401);
  const stream = await fetch(`${url}/range`, { headers: { ...headers, accept: 'application/x-ndjson' } });
  expect([stream.headers.get('content-encoding'), (await stream.text()).split('\n').length]).toEqual(['gzip', 2004]);
  const big = await fetch(`${url}/kv/big`, {
    method: 'PUT',
    body: new Uint8Array(9_000_000),
    headers: { ...headers, 'content-type': 'application/octet-stream' },
  });
  expect(big.status).toBe(413);
});

test('on workerd it sees the same', async () => {
  const script = readFileSync(await bundle('tour-worker.ts', true), 'utf8');
  const workerd = new Miniflare({
    modules: [
      { type: 'ESModule', path: 'worker.js', contents: script },
      { type: 'CompiledWasm', path: 'varve.wasm', contents: readFileSync(join(DIST, 'varve.wasm')) },
    ],
    compatibilityDate: '2026-04-01',
  });
  try {
    const response = await workerd.dispatchFetch('http://worker/');
    const text = await response.text();
    expect([response.status, text.slice(0, 200)]).toEqual([200, JSON.stringify(seen).slice(0, 200)]);
    expect(JSON.parse(text)).toEqual(seen);
  } finally {
    await workerd.dispose();
  }
});
