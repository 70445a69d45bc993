import { expect, test } from 'vitest';
import { selfTimes, summary } from './summary.ts';
import { profilesOf } from './trace.ts';

const frame = (functionName: string, url = 'http://x/bench/bench-worker.js') => ({
  ...{ functionName, url, scriptId: 3, lineNumber: 0, columnNumber: 7 },
});
const thread = { pid: 1, tid: 2, id: '0x1' };

/** A worker that is sampled six times, in two chunks; the second adds a function. */
const trace = JSON.stringify({
  traceEvents: [
    { ...thread, name: 'thread_name', args: { name: 'DedicatedWorker thread' } },
    { ...thread, name: 'Profile', args: { data: { startTime: 1000 } } },
    {
      ...thread,
      name: 'ProfileChunk',
      args: {
        data: {
          cpuProfile: {
            nodes: [
              { id: 1, callFrame: { functionName: '(root)' } },
              { id: 2, parent: 1, callFrame: { functionName: '(idle)' } },
              { id: 3, parent: 1, callFrame: frame('outer') },
            ],
            samples: [2, 3, 3],
          },
          timeDeltas: [0, 500, 1000],
        },
      },
    },
    {
      ...thread,
      name: 'ProfileChunk',
      args: {
        data: {
          cpuProfile: { nodes: [{ id: 4, parent: 3, callFrame: frame('inner') }], samples: [4, 3, 4] },
          timeDeltas: [1000, 3000, 1000],
        },
      },
    },
    { ...thread, id: '0x2', name: 'Profile', args: { data: { startTime: 1000 } } },
  ],
});

test('the chunks of a thread become one profile that tools open', () => {
  const [only, ...others] = profilesOf(trace);
  expect(others).toEqual([]);
  expect(only?.name).toBe('bench-worker');
  const { profile } = only!;
  expect(profile.samples).toEqual([2, 3, 3, 4, 3, 4]);
  expect(profile.timeDeltas).toHaveLength(6);
  expect([profile.startTime, profile.endTime]).toEqual([1000, 7500]);
  expect(profile.nodes.map(({ id, children, hitCount }) => [id, children, hitCount])).toEqual([
    [1, [2, 3], 0],
    [2, [], 1],
    [3, [4], 3],
    [4, [], 2],
  ]);
});

test('self time is that until the next sample, and rest is no work', () => {
  const [only] = profilesOf(trace);
  const times = selfTimes(only!.profile).map(({ frame: { functionName }, self_ms }) => [functionName, self_ms]);
  // outer: 1000 and 1000 and 1000 us; inner: 3000 us, then the end.
  expect(times).toEqual([
    ['outer', 3],
    ['inner', 3],
  ]);
  expect(summary(only!)).toContain('bench-worker: at work for 6 of 7 ms');
});
