// When a store counts as idle: three seconds after its last write, whatever its jobs do meanwhile.

import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { Flusher } from '../../js/src/engine/flusher.ts';
import type { EngineStore } from '../../js/src/wasm/store.ts';

let writes = 0;
let calls: string[] = [];

/** Without the millisecond that a timer of no time takes. */
const nowMs = (): number => Math.floor(performance.now() / 10) * 10;

/** An engine that counts its writes, and notes when it is called. */
const engine = {
  isUnsynced: () => false,
  writesSinceSeal: () => writes,
  seal: () => {
    writes = 0;
  },
  release: () => undefined,
  shrink: (isIdle: boolean) => void calls.push(`${isIdle ? 'idle' : 'shrink'} at ${nowMs()}`),
} as unknown as EngineStore;

function begin(): { readonly flusher: Flusher; write(): void } {
  const flusher = new Flusher(engine, () => calls.push(`jobs at ${nowMs()}`));
  return {
    flusher,
    write: () => {
      writes++;
      flusher.note();
    },
  };
}

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] });
  [writes, calls] = [0, []];
});
afterEach(() => void vi.useRealTimers());

// The story: each job that ended in these three seconds began them anew. A store whose merges were behind on a busy machine still had
// all that was overwritten ten seconds after its last write.
test('a store is idle three seconds after its last write, also while jobs end', () => {
  const { flusher, write } = begin();
  write();
  for (let at = 0; at < 4000; at += 400) {
    vi.advanceTimersByTime(400);
    flusher.idle();
  }
  expect(calls.slice(0, 2)).toEqual(['idle at 3000', 'jobs at 3000']);
});

test('a page that is hidden meanwhile does not keep its store from that', () => {
  const { flusher, write } = begin();
  write();
  vi.advanceTimersByTime(1000);
  flusher.now();
  vi.advanceTimersByTime(2000);
  expect(calls).toEqual(['idle at 3000', 'jobs at 3000']);
});

// The story: a page was hidden within a quarter of a second after a write, as when one saves and goes to another tab. That ended the time
// without writes, so room that was not needed was not given back, and what was overwritten stayed, until something else was written.
test('a store becomes idle also if its page is hidden just after a write', () => {
  const { flusher, write } = begin();
  write();
  vi.advanceTimersByTime(100);
  flusher.now();
  vi.advanceTimersByTime(4000);
  expect(calls).toEqual(['idle at 3250', 'jobs at 3250']);
});

test('a write begins the three seconds anew', () => {
  const { write } = begin();
  write();
  vi.advanceTimersByTime(2000);
  write();
  vi.advanceTimersByTime(2900);
  expect(calls).toEqual([]);
  vi.advanceTimersByTime(200);
  expect(calls).toEqual(['idle at 5000', 'jobs at 5000']);
});

test('the room of what jobs merged while the store is idle is given back a quarter of a second later', () => {
  const { flusher, write } = begin();
  write();
  vi.advanceTimersByTime(3500);
  calls = [];
  flusher.idle();
  vi.advanceTimersByTime(300);
  expect(calls).toEqual(['idle at 3750', 'jobs at 3750']);
});

test('nothing is called after the store is closed', () => {
  const { flusher, write } = begin();
  write();
  vi.advanceTimersByTime(1000);
  flusher.shutDown();
  vi.advanceTimersByTime(10_000);
  expect(calls).toEqual([]);
});
