// A holder of a store in Deno KV ends before or after any of its calls. The next holder finds the slots as they were after some
// commit, not before the last known commit, and continues from there. No key is left that the store does not know.

import { expect, test } from 'vitest';
import type { BufferedDevice } from '../../js/src/storage/buffered/device.ts';
import { DenoKvStorage } from '../../js/src/storage/denokv/adapter.ts';
import type { ManagedDevice } from '../../js/src/storage/device.ts';
import { MemoryDevice } from '../../js/src/storage/memory.ts';
import { randomFrom } from './support/engine.ts';
import { FakeKv, FakeKvState, type Fault } from './support/fake-kv.ts';

const KIB = 1024;
const SLOTS = 8;
const SETTINGS = { prefix: ['varve'], leaseMs: 60_000 };
/** The images of slots that are compared. */
type Image = readonly Uint8Array[];

type Step = (device: ManagedDevice) => void;

function image(device: ManagedDevice): Image {
  return Array.from({ length: SLOTS }, (_, slot) => {
    const bytes = new Uint8Array(device.size(slot));
    expect(device.read(slot, bytes, 0)).toBe(bytes.length);
    return bytes;
  });
}

const equal = (a: Image, b: Image): boolean =>
  a.every((bytes, slot) => Buffer.compare(bytes, b[slot] as Uint8Array) === 0);

/** Slots as after all of the steps. */
function after(steps: readonly Step[]): Image {
  const model = new MemoryDevice({ slots: SLOTS });
  for (const step of steps) step(model);
  return image(model);
}

const fill = (slot: number, kib: number, byte: number, at = 4 * KIB): Step => {
  return (device) => void device.write(slot, new Uint8Array(kib * KIB).fill(byte), at);
};
const both =
  (...steps: Step[]): Step =>
  (device) => {
    for (const step of steps) step(device);
  };

/**
 * Each step is one commit: in place, large, with drops, with a row of several parts, a fold, and then all of them again over existing
 * data.
 */
const STEPS: readonly Step[] = [
  fill(0, 40, 1),
  both(fill(0, 60, 2), fill(1, 30, 3)),
  both(fill(1, 1700, 4), fill(2, 300, 5)),
  fill(1, 1, 6, 900 * KIB),
  both(fill(1, 1700, 7), fill(0, 2, 8, 0), (device) => device.truncate(2, 70 * KIB)),
  both((device) => device.truncate(1, 0), fill(3, 900, 9)),
  // Existing chunks that get a small write are journaled: a row longer than a value.
  both(...Array.from({ length: 8 }, (_, i) => fill(3, 15, 20 + i, (4 + 64 * i) * KIB))),
  ...Array.from({ length: 5 }, (_, round) =>
    both(...Array.from({ length: 8 }, (_, i) => fill(3, 15, 40 + round * 8 + i, (20 + 64 * i) * KIB))),
  ),
  both(fill(3, 1000, 90), (device) => device.truncate(0, 1000)),
  fill(1, 20, 91),
];

/** Writes all steps; returns how many are committed when it ends, or when the connection has died. */
async function write(kv: FakeKv, from: number): Promise<number> {
  let committed = from;
  const writing = async (): Promise<void> => {
    const device = await new DenoKvStorage(kv, SETTINGS).open('store', { lockTimeout: 0 });
    for (const step of STEPS.slice(from)) {
      step(device);
      await device.committed();
      committed++;
    }
    await device.closeAll();
  };
  await Promise.race([writing(), kv.died]);
  return committed;
}

/** Opens the store after a death; returns how many steps are in it. */
async function found(state: FakeKvState, committed: number, images: readonly Image[]): Promise<number> {
  state.expire();
  const device = await new DenoKvStorage(new FakeKv(state), SETTINGS).open('store', { lockTimeout: 0 });
  await device.committed();
  const left = await device.resident(() => image(device));
  const steps = equal(left, images[committed] as Image) ? committed : committed + 1;
  expect(equal(left, images[steps] as Image)).toBe(true);
  await device.closeAll();
  return steps;
}

/** Deletes the store, which knows of all its keys. */
async function expectNothingLeft(state: FakeKvState): Promise<void> {
  await new DenoKvStorage(new FakeKv(state), SETTINGS).delete('store', { lockTimeout: 0 });
  expect([...state.entries.values()].map(({ key }) => key)).toEqual([]);
}

const images = STEPS.map((_, count) => after(STEPS.slice(0, count))).concat([after(STEPS)]);

test.each(['dead before', 'dead after'] as const)(
  'a holder that is %s any of its calls',
  { timeout: 300_000 },
  async (fault: Fault) => {
    const whole = new FakeKv();
    expect(await write(whole, 0)).toBe(STEPS.length);
    expect(whole.state.operationBytesMax).toBeGreaterThan(700 * KIB);
    for (let call = 1; call <= whole.calls; call++) {
      const state = new FakeKvState();
      const kv = new FakeKv(state);
      kv.fault = (number) => (number === call ? fault : undefined);
      const committed = await write(kv, 0);
      const steps = await found(state, committed, images);
      if (call % 3 === 0) {
        const next = new FakeKv(state);
        expect(await write(next, steps)).toBe(STEPS.length);
        expect(await found(state, STEPS.length, [...images, after(STEPS)])).toBe(STEPS.length);
      }
      await expectNothingLeft(state);
    }
  },
);

test('a successor that ends during its takeover, at any of its calls, does not keep the store from the next one', {
  timeout: 120_000,
}, async () => {
  // The first holder ends within the large commit of the third step, so something is staged.
  const counting = new FakeKv();
  let calls = 0;
  counting.fault = () => {
    calls++;
    return counting.state.keys('debris').length > 0 ? 'dead after' : undefined;
  };
  await write(counting, 0);
  for (let call = 1; call < 12; call++) {
    const state = new FakeKvState();
    const first = new FakeKv(state);
    first.fault = (number) => (number === calls ? 'dead after' : undefined);
    const committed = await write(first, 0);
    expect(state.keys('debris').length).toBe(1);
    state.expire();
    const second = new FakeKv(state);
    second.fault = (number) => (number === call ? 'dead after' : undefined);
    const opened = new DenoKvStorage(second, SETTINGS)
      .open('store', { lockTimeout: 0 })
      .then((device) => device.closeAll());
    await Promise.race([opened, second.died]);
    await found(state, committed, images);
    expect(state.keys('debris').length).toBe(0);
    await expectNothingLeft(state);
  }
});

test('a deletion that ends at any of its calls is finished by the next caller, whether it deletes or opens', async () => {
  const remove = (kv: FakeKv): Promise<unknown> =>
    Promise.race([new DenoKvStorage(kv, SETTINGS).delete('store', { lockTimeout: 0 }), kv.died]);
  for (let call = 1; ; call++) {
    const state = new FakeKvState();
    await write(new FakeKv(state), 0);
    const kv = new FakeKv(state);
    kv.fault = (number) => (number === call ? 'dead after' : undefined);
    await remove(kv);
    if (kv.calls < call) break;
    state.expire();
    const storage = new DenoKvStorage(new FakeKv(state), SETTINGS);
    const isThere = (await storage.list()).includes('store');
    if (call % 2 === 0) {
      const device = await storage.open('store', { lockTimeout: 0 });
      const left = await device.resident(() => image(device));
      expect(equal(left, images[isThere ? STEPS.length : 0] as Image)).toBe(true);
      await device.closeAll();
    }
    await expectNothingLeft(state);
  }
});

test.each([1, 2, 3, 4])(
  'a device equals one in memory, in all operations and crashes (seed %i)',
  { timeout: 120_000 },
  async (seed) => {
    const random = randomFrom(seed);
    const state = new FakeKvState();
    let kv = new FakeKv(state);
    const open = (): Promise<BufferedDevice> => {
      kv = new FakeKv(state);
      const shaky = random(2) === 0;
      kv.fault = () => (shaky && random(40) === 0 ? (random(2) === 0 ? 'refused' : 'unheard') : undefined);
      return new DenoKvStorage(kv, SETTINGS).open('store', { lockTimeout: 0 });
    };
    let device = await open();
    await device.committed();
    let model = new MemoryDevice({ slots: SLOTS });
    /** The model after each step since the last step that is certainly committed. */
    let possible: Image[] = [image(model)];
    for (let step = 0; step < 120; step++) {
      const slot = random(SLOTS);
      const size = model.size(slot);
      const what = random(10);
      const change: Step = (one) => {
        if (what < 6) fill(slot, 1, 1 + (step % 250), Math.min(size, 4 * KIB))(one);
        if (what < 2) fill(slot, 1500, 1 + (step % 250))(one);
        else if (what < 5) fill(slot, 60, 1 + (step % 250), size)(one);
        else if (what === 8) one.truncate(slot, Math.floor(size / 2));
        else if (what === 9) one.flush(slot);
      };
      change(model);
      change(device);
      possible.push(image(model));
      const then = random(12);
      if (then < 4) {
        await device.committed();
        possible = [image(model)];
      } else if (then < 8) await new Promise((resolve) => setImmediate(resolve));
      else if (then === 8) {
        kv.kill();
        state.expire();
        device = await open();
        await device.committed();
        const left = await device.resident(() => image(device));
        expect(possible.some((one) => equal(one, left))).toBe(true);
        model = new MemoryDevice({ slots: SLOTS });
        left.forEach((bytes, at) => void model.write(at, bytes, 0));
        possible = [left];
      }
    }
    expect(equal(await device.resident(() => image(device)), image(model))).toBe(true);
    await device.closeAll();
    await expectNothingLeft(state);
  },
);
