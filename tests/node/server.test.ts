// The static server reads only files below a mounted folder, and gives each page the policy of its mount.

import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { request } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { ISOLATED, locate, STRICT_POLICY, serve } from '../../scripts/server.mjs';

let folder: string;
let server: Awaited<ReturnType<typeof serve>>;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'varve-server-'));
  await mkdir(join(folder, 'demo'));
  await mkdir(join(folder, 'demo-private'));
  await mkdir(join(folder, 'bench'));
  await writeFile(join(folder, 'secret.txt'), 'secret');
  await writeFile(join(folder, 'demo-private', 'secret.txt'), 'secret');
  await writeFile(join(folder, 'demo', 'index.html'), '<p>demo</p>');
  await writeFile(join(folder, 'demo', 'varve.wasm'), new Uint8Array([0, 97, 115, 109]));
  await writeFile(join(folder, 'bench', 'index.html'), '<p>bench</p>');
  server = await serve({
    mounts: [
      { path: '/demo/', folder: join(folder, 'demo'), headers: STRICT_POLICY },
      { path: '/bench/', folder: join(folder, 'bench'), headers: ISOLATED },
    ],
    redirects: { '/': '/demo/' },
  });
});

afterAll(async () => {
  await server.close();
  await rm(folder, { recursive: true });
});

/** The status of a path that is sent unchanged: fetch would normalize it first. */
function status(path: string): Promise<number | undefined> {
  return new Promise((resolve, reject) => {
    request({ port: server.port, path }, (response) => {
      response.resume();
      resolve(response.statusCode);
    })
      .on('error', reject)
      .end();
  });
}

test.each([
  '/demo/../secret.txt',
  '/demo/%2e%2e/secret.txt',
  '/demo/..%2fsecret.txt',
  '/demo/..%5csecret.txt',
  '/demo/../demo-private/secret.txt',
  '/demo//etc/hostname',
  '/demo/%00',
  '/demo/%',
  '/secret.txt',
])('%s is not found', async (path) => {
  expect(await status(path)).toBe(404);
});

test('no path leads out of its mount', () => {
  const mounts = [{ path: '/demo/', folder: join(folder, 'demo') }];
  expect(locate('/demo/../../secret.txt', mounts)).toBeUndefined();
  expect(locate('/demo/a/../index.html', mounts)?.file).toBe(join(folder, 'demo', 'index.html'));
});

test('a page has the headers of its mount, and wasm its type', async () => {
  const demo = await fetch(`${server.origin}/`);
  expect(demo.url).toBe(`${server.origin}/demo/`);
  expect(await demo.text()).toBe('<p>demo</p>');
  expect(demo.headers.get('content-security-policy')).toContain("'wasm-unsafe-eval'");
  expect(demo.headers.get('cross-origin-opener-policy')).toBeNull();
  const bench = await fetch(`${server.origin}/bench/`);
  expect(bench.headers.get('cross-origin-embedder-policy')).toBe('require-corp');
  const wasm = await fetch(`${server.origin}/demo/varve.wasm`, { method: 'HEAD' });
  expect(wasm.headers.get('content-type')).toBe('application/wasm');
});

test('only reading is answered', async () => {
  expect((await fetch(`${server.origin}/demo/`, { method: 'POST' })).status).toBe(405);
});
