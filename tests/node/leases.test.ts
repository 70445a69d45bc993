// Leases: under any schedule of clients and leaders, reads are linearizable; and the simulation catches what breaks them.

import { expect, test } from 'vitest';
import { KeptReads } from '../../js/src/cache/kept-reads.ts';
import { Footprint } from '../../js/src/protocol/footprint.ts';
import { ResponseFlag } from '../../js/src/protocol/lease.ts';
import { Leases, type Lessee } from '../../js/src/server/leases.ts';
import { type Coverage, type Parts, Simulation, SOUND } from './support/lease-simulation.ts';

const STEPS = 500;
/** `LEASE_SEEDS=100000 npx vitest run --project js tests/node/leases.test.ts` looks longer. */
const SEEDS = Number(process.env['LEASE_SEEDS'] ?? 400);
/** Seeds that a mutant may survive. */
const MUTANT_SEEDS = 2000;

test('every history is linearizable', () => {
  const sum: Coverage = { hits: 0, revocations: 0, held: 0, isolated: 0, takeovers: 0, writtenThrough: 0 };
  for (let seed = 1; seed <= SEEDS; seed++) {
    const simulation = new Simulation(seed);
    expect(simulation.run(STEPS), `seed ${seed}`).toBe(true);
    for (const name of Object.keys(sum) as (keyof Coverage)[]) sum[name] += simulation.coverage[name];
  }
  // A simulation in which nothing happens proves nothing.
  for (const [name, count] of Object.entries(sum)) expect(count, name).toBeGreaterThan(SEEDS / 20);
});

// Browsers fire timers up to a millisecond early, and a clock goes on between two readings. Leases that ended between them were waited for
// without another timer: the tab of `tests/browser/sharing.test.ts` that writes under the next leader hung now and then.
test('a timer that fires a moment early frees what it was set for', () => {
  const tick = 2 ** -6;
  for (let early = 0; early < 10; early++) {
    let time = 0;
    let wakeTime: number | undefined;
    const freed: string[] = [];
    const leases = new Leases<Lessee, string>({
      now: () => (time += tick),
      wakeAt: (at) => {
        wakeTime = at;
      },
      isAlone: () => false,
      onFree: (_, items) => freed.push(...items),
    });
    leases.know([2]);
    const writer: Lessee = { send: () => undefined };
    const isAdmitted = leases.admit(writer, 'a write', () => Footprint.of({ keys: ['a'], ranges: [] }));
    expect(isAdmitted).toBe(false);
    for (let timers = 0; timers < 10 && wakeTime !== undefined; timers++) {
      time = Math.max(time, wakeTime - early * tick);
      wakeTime = undefined;
      leases.wake();
    }
    expect(freed, `${early} readings early`).toEqual(['a write']);
  }
});

// The first write revoked a key, so its reader drops each range that contains it. But a second write, of another key of the range, went ahead before
// the reader had done so.
test('a range that is being revoked for one key holds writes of its other keys', () => {
  const leases = new Leases<Lessee, string>({
    now: () => 0,
    wakeAt: () => undefined,
    isAlone: () => false,
    onFree: () => undefined,
  });
  leases.know([]);
  const [reader, one, another] = Array.from({ length: 3 }, (): Lessee => ({ send: () => undefined })) as Lessee[];
  const read = leases.begin(reader as Lessee, () => Footprint.of({ keys: [], ranges: [['a', 'z']] }));
  expect(leases.grant(reader as Lessee, read) & ResponseFlag.granted).not.toBe(0);
  const writes = (key: string) => () => Footprint.of({ keys: [key], ranges: [] });
  expect(leases.admit(one as Lessee, 'a write', writes('b'))).toBe(false);
  expect(leases.admit(another as Lessee, 'another write', writes('c'))).toBe(false);
});

type MadeLeases = ReturnType<Parts['leases']>;
type LessorOf = Parameters<Parts['leases']>[0];
type MadeKept = ReturnType<Parts['kept']>;

/** Leases that differ in some methods. */
function leases(change: (sound: MadeLeases) => Partial<MadeLeases>): Parts {
  return {
    ...SOUND,
    leases: (lessor) => {
      const sound = new Leases(lessor) as MadeLeases;
      return delegate(sound, change(sound));
    },
  };
}

/** The reads that clients keep, with a difference in some methods. */
function kept(change: (sound: MadeKept) => Partial<MadeKept>): Parts {
  return {
    ...SOUND,
    kept: (now) => {
      const sound = new KeptReads(1000, now) as MadeKept;
      return delegate(sound, change(sound));
    },
  };
}

/** An object that has the methods of another one, except for these. */
function delegate<T extends object>(sound: T, change: Partial<T>): T {
  return new Proxy(sound, {
    get: (target, name) => {
      const own = change[name as keyof T];
      if (own !== undefined) return own;
      const value = Reflect.get(target, name, target) as unknown;
      return typeof value === 'function' ? value.bind(target) : value;
    },
  });
}

const MUTANTS: [string, Parts][] = [
  ['revokes nothing', leases(() => ({ admit: () => true }))],
  [
    'executes a write as soon as it has revoked',
    leases((sound) => ({ admit: (...args) => sound.admit(...args) || args[2] !== undefined })),
  ],
  [
    'takes half of the time of a lease for all of it',
    { ...SOUND, leases: (lessor: LessorOf) => new Leases({ ...lessor, now: () => lessor.now() * 2 }) as MadeLeases },
  ],
  [
    'grants what was read before a revocation',
    leases((sound) => ({
      grant: (from, grant) => sound.grant(from, grant && { ...grant, epoch: grant.lease.epoch }),
    })),
  ],
  [
    'does not report that a lease had ended',
    leases((sound) => ({ grant: (...args) => sound.grant(...args) & ~ResponseFlag.isNew })),
  ],
  ['notes nothing of what is read', leases((sound) => ({ begin: (from) => sound.begin(from, () => new Footprint()) }))],
  [
    'grants a lease while a write waits',
    leases((sound) => ({
      begin: (from, reads) => sound.begin(from, reads) ?? sound.begin(from, () => new Footprint()),
    })),
  ],
  ['does not wait for the clients of the former leader', leases((sound) => ({ know: () => sound.know([]) }))],
  ['never ends a lease', { ...SOUND, kept: () => new KeptReads(1000, () => 0) }],
  [
    'counts from when the answer came',
    {
      ...SOUND,
      kept: (now) => {
        const sound = new KeptReads(1000, now) as MadeKept;
        return delegate(sound, { granted: (_, isNew) => sound.granted(now(), isNew) });
      },
    },
  ],
  ['keeps what was kept under an earlier lease', kept((sound) => ({ granted: (at) => sound.granted(at, false) }))],
  ['drops nothing', kept(() => ({ revoked: () => undefined }))],
  ['keeps everything when its leader is gone', kept(() => ({ lost: () => undefined }))],
  [
    'keeps a read that began before an own write',
    kept((sound) => ({
      keep: (ticket, found) => sound.keep({ ...ticket, isStale: false }, found),
    })),
  ],
  [
    'keeps its own write although it was revoked meanwhile',
    kept((sound) => ({
      written: (ticket, value) => {
        ticket.isStale = false;
        sound.written(ticket, value);
      },
    })),
  ],
  ['ignores own deletions', kept(() => ({ writeRange: () => undefined }))],
];

test.each(MUTANTS)('a mutant that %s is caught', (_, parts) => {
  let seed = 1;
  while (seed <= MUTANT_SEEDS && new Simulation(seed, parts).run(STEPS)) seed++;
  expect(seed).toBeLessThanOrEqual(MUTANT_SEEDS);
});
