// The example of docs/guide/deno-kv.md, whose requests share a store that can be lost.

import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { afterEach, expect, test, vi } from 'vitest';
import { VarveError } from '../../js/src/errors.ts';
import { root } from '../../scripts/tools.mjs';
import { FakeKv, FakeKvState } from './support/fake-kv.ts';

/** A store of the example: a set fails when it is lost; a scan ends when the test lets it. */
class Notes {
  isLost = false;
  closed = 0;
  scanned: () => void = () => undefined;

  async set(): Promise<{ sequence: number }> {
    if (this.isLost) throw new VarveError('VARVE_LOCKED', 'Another isolate has taken the store over.');
    return { sequence: opened.length };
  }

  values() {
    const toArray = () => new Promise<string[]>((resolve) => (this.scanned = () => resolve([])));
    return { toArray };
  }

  async close(): Promise<void> {
    this.closed++;
  }
}

const opened: Notes[] = [];
/** The error of the next opening. */
let refusal: Error | undefined;

vi.mock('../../js/src/index.ts', async () => ({
  ...(await vi.importActual<object>('../../js/src/errors.ts')),
  open: async () => {
    const why = refusal;
    refusal = undefined;
    if (why !== undefined) throw why;
    return opened[opened.push(new Notes()) - 1];
  },
}));

type Handler = (request: Request) => Promise<Response>;

async function start(): Promise<Handler> {
  return new Promise((resolve) => {
    vi.stubGlobal('Deno', { openKv: async () => new FakeKv(new FakeKvState()), serve: resolve });
    void import(pathToFileURL(join(root, 'examples', 'deno-kv', 'main.ts')).href);
  });
}

afterEach(() => vi.unstubAllGlobals());

const url = 'http://localhost';
const post = (): Request => new Request(url, { method: 'POST', body: 'Silt' });

// Story: an isolate was frozen and lost its store. A slow request still used it, so each later one got the dead store, and 503.
test('after a store was lost, the next request opens it anew, while others still use the old one', async () => {
  const handle = await start();
  refusal = new VarveError('VARVE_LOCKED', 'Another isolate has the store.');
  const statuses = (await Promise.all([handle(post()), handle(post())])).map(({ status }) => status);
  expect([statuses, opened.length]).toEqual([[503, 503], 0]);
  const slow = handle(new Request(url));
  await vi.waitFor(() => expect(opened).toHaveLength(1));
  const [first] = opened as [Notes];
  first.isLost = true;
  expect((await handle(post())).status).toBe(503);
  const answer = await handle(post());
  expect([answer.status, await answer.json()]).toEqual([201, { sequence: 2 }]);
  expect(opened.map(({ closed }) => closed)).toEqual([0, 1]);
  first.scanned();
  expect((await slow).status).toBe(200);
  expect(opened.map(({ closed }) => closed)).toEqual([1, 1]);
});
