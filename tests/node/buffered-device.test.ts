// A device over an asynchronous storage: what it reads, what it commits and when, and what a crash leaves.

import { expect, test, vi } from 'vitest';
import { CHUNK_BYTES } from '../../js/src/storage/buffered/chunk.ts';
import type { ChunkName } from '../../js/src/storage/buffered/chunk-store.ts';
import { BufferedDevice } from '../../js/src/storage/buffered/device.ts';
import { BufferedSlots } from '../../js/src/storage/buffered/slots.ts';
import { type ManagedDevice, SlotError } from '../../js/src/storage/device.ts';
import { MemoryDevice } from '../../js/src/storage/memory.ts';
import { randomFrom } from './support/engine.ts';
import { ChunkState, FakeChunks } from './support/fake-chunks.ts';
import { kindOf } from './support/kind-of.ts';

const KIB = 1024;

/** All bytes of all slots. */
function image(device: MemoryDevice | BufferedDevice): Uint8Array[] {
  return Array.from({ length: device.count() }, (_, slot) => {
    const bytes = new Uint8Array(device.size(slot));
    expect(device.read(slot, bytes, 0)).toBe(bytes.length);
    return bytes;
  });
}

function equal(a: readonly Uint8Array[], b: readonly Uint8Array[]): boolean {
  return a.length === b.length && a.every((bytes, i) => Buffer.compare(bytes, b[i] as Uint8Array) === 0);
}

test('the writes of one turn are one commit, and the writes during that commit are the next one', async () => {
  const chunks = new FakeChunks();
  const device = await BufferedDevice.open(chunks);
  await device.committed();
  const before = chunks.commits.length;
  chunks.pause();
  for (let i = 0; i < 5; i++) device.write(0, Uint8Array.of(i + 1), i);
  await Promise.resolve();
  for (let i = 5; i < 9; i++) {
    device.write(1, Uint8Array.of(i), i);
    await Promise.resolve();
  }
  expect(chunks.commits.length - before).toBe(1);
  chunks.resume();
  await device.committed();
  expect(chunks.commits.length - before).toBe(2);
});

test('a write is read back at once, and committed with its commit only', async () => {
  const chunks = new FakeChunks();
  const device = await BufferedDevice.open(chunks);
  await device.committed();
  chunks.pause();
  device.write(2, Uint8Array.of(1, 2, 3), 0);
  let isCommitted = false;
  const commit = device.committed().then(() => {
    isCommitted = true;
  });
  expect(image(device)[2]).toEqual(Uint8Array.of(1, 2, 3));
  for (let i = 0; i < 5; i++) await new Promise((resolve) => setImmediate(resolve));
  expect(isCommitted).toBe(false);
  chunks.resume();
  await commit;
});

test('a flush makes its commit strict, and a relaxed commit before it is followed by a strict one', async () => {
  const chunks = new FakeChunks();
  const device = await BufferedDevice.open(chunks);
  await device.committed();
  device.write(0, Uint8Array.of(1), 0);
  await device.committed();
  device.write(0, Uint8Array.of(2), 0);
  device.flush(0);
  await device.committed();
  device.flush(0);
  await device.committed();
  device.write(0, Uint8Array.of(3), 0);
  await device.committed();
  device.flush(0);
  await device.committed();
  // A flush with nothing left to make durable does no commit.
  expect(chunks.commits.slice(1).map(({ isStrict }) => isStrict)).toEqual([false, true, false, true]);
});

test('a flush after opening makes the relaxed commits of a former holder durable', async () => {
  const state = new ChunkState();
  const first = await BufferedDevice.open(new FakeChunks(state));
  first.write(0, Uint8Array.of(7), 5);
  await first.committed();
  const second = await BufferedDevice.open(new FakeChunks(state));
  second.flush(0);
  await second.committed();
  state.losePower();
  const third = await BufferedDevice.open(new FakeChunks(state));
  expect(await third.resident(() => image(third)[0]?.[5])).toBe(7);
});

test('small writes go to the journal, long ones to chunks, zeros behind the end nowhere', async () => {
  const chunks = new FakeChunks();
  const device = await BufferedDevice.open(chunks);
  device.write(0, new Uint8Array(256 * KIB), 4 * KIB);
  device.write(1, new Uint8Array(120 * KIB).fill(7), 4 * KIB);
  device.write(2, new Uint8Array(100).fill(9), 4 * KIB);
  await device.committed();
  const puts = chunks.commits.flatMap((commit) => commit.puts.map(({ slot, index }) => [slot, index]));
  expect(puts).toEqual([
    [1, 1],
    [1, 2],
  ]);
  expect(chunks.commits.reduce((bytes, { row }) => bytes + row.length, 0)).toBeLessThan(1000);
  expect(device.size(0)).toBe(260 * KIB);
});

test('a journal that has grown long is folded into chunks, and opens as before', async () => {
  const state = new ChunkState();
  const chunks = new FakeChunks(state);
  const device = await BufferedDevice.open(chunks);
  device.write(0, new Uint8Array(70 * KIB).fill(1), 0);
  await device.committed();
  for (let i = 0; i < 1100; i++) {
    device.write(i % 3, Uint8Array.of(i), 5 * KIB + i);
    await device.committed();
  }
  expect(chunks.commits.filter(({ folds }) => folds).length).toBe(1);
  expect(state.rows.length).toBeLessThan(150);
  const again = await BufferedDevice.open(new FakeChunks(state));
  expect(equal(await again.resident(() => image(again)), await device.resident(() => image(device)))).toBe(true);
});

test('closing leaves a short journal, from which the next opening knows all short chunks', async () => {
  const state = new ChunkState();
  const device = await BufferedDevice.open(new FakeChunks(state));
  device.write(0, Uint8Array.of(9), 100);
  device.write(0, new Uint8Array(70 * KIB).fill(1), 4 * KIB);
  device.truncate(1, 200 * KIB);
  for (let i = 0; i < 200; i++) {
    device.write(2, Uint8Array.of(i, 7), i * 20);
    await device.committed();
  }
  const written = await device.resident(() => image(device));
  await device.closeAll();
  expect(state.rows.length).toBe(1);
  expect(state.rows[0]?.length).toBeLessThan(15 * KIB);
  const chunks = new FakeChunks(state);
  const wanted: ChunkName[] = [];
  const { takeOver } = chunks;
  chunks.takeOver = (call) =>
    takeOver.call(chunks, (rows) => {
      wanted.push(...call(rows));
      return wanted;
    });
  const again = await BufferedDevice.open(chunks);
  expect(wanted.map(({ slot, index }) => [slot, index])).toEqual([]);
  expect(equal(await again.resident(() => image(again)), written)).toBe(true);
  expect(chunks.reads).toBe(1);
});

test('the end of a long slot is read while a store opens, and fetched if it does not arrive', async () => {
  const state = new ChunkState();
  const first = await BufferedDevice.open(new FakeChunks(state));
  first.write(0, new Uint8Array(300 * KIB).fill(5), 4 * KIB);
  await first.closeAll();
  for (const arrives of [true, false]) {
    const chunks = new FakeChunks(state);
    if (!arrives) chunks.reachesAhead = () => Promise.reject(new SlotError('full', 'The takeover found no room.'));
    const device = await BufferedDevice.open(chunks);
    const into = new Uint8Array(100);
    await device.resident(() => device.read(0, into, 304 * KIB - 100));
    expect([into[0], chunks.reads]).toEqual([5, arrives ? 0 : 1]);
    await device.closeAll();
  }
});

test('a fold that finds no room refuses no write, and is tried seldom, until there is some', async () => {
  const state = new ChunkState();
  const chunks = new FakeChunks(state);
  const device = await BufferedDevice.open(chunks);
  chunks.refuses = ({ folds, puts }) => folds || puts.length > 0;
  const write = async (i: number): Promise<void> => {
    device.write(i % 7, Uint8Array.of(i), 5 * KIB + i * 50);
    await device.committed();
  };
  for (let i = 0; i < 5000; i++) await write(i);
  const folds = (): number => chunks.commits.filter((commit) => commit.folds).length;
  expect(folds()).toBeLessThan(5);
  chunks.refuses = () => false;
  for (let i = 0; i < 4000; i++) await write(i);
  expect(folds()).toBeLessThan(6);
  expect(state.rows.length).toBeLessThan(3000);
  const again = await BufferedDevice.open(new FakeChunks(state));
  expect(equal(await again.resident(() => image(again)), await device.resident(() => image(device)))).toBe(true);
});

test('a read of missing bytes is pending, and one fetch brings all bytes that a call was missing', async () => {
  const state = new ChunkState();
  const first = await BufferedDevice.open(new FakeChunks(state));
  for (let slot = 0; slot < 8; slot++) first.write(slot, new Uint8Array(300 * KIB).fill(slot + 1), 4 * KIB);
  await first.closeAll();
  const chunks = new FakeChunks(state);
  const device = await BufferedDevice.open(chunks);
  expect(kindOf(() => device.read(3, new Uint8Array(10), 100 * KIB))).toBe('pending');
  const into = new Uint8Array(8);
  let calls = 0;
  const answer = await device.resident(() => {
    calls++;
    let isPending = false;
    for (let slot = 0; slot < 8; slot++) {
      isPending = kindOf(() => device.read(slot, into.subarray(slot, slot + 1), 200 * KIB)) === 'pending' || isPending;
    }
    return isPending;
  });
  expect([answer, calls, chunks.reads]).toEqual([false, 2, 1]);
  expect([...into]).toEqual([1, 2, 3, 4, 5, 6, 7, 8]);
});

test('taking a store over reads the first pages and small slots, one fetch the end of a table', async () => {
  const state = new ChunkState();
  const first = await BufferedDevice.open(new FakeChunks(state));
  for (let slot = 0; slot < 8; slot++) first.write(slot, new Uint8Array(4 * KIB).fill(slot + 1), 0);
  for (const slot of [1, 4]) first.write(slot, new Uint8Array(60 * KIB).fill(50 + slot), 4 * KIB);
  for (const slot of [2, 3, 6]) first.write(slot, new Uint8Array(300 * KIB).fill(60), 4 * KIB);
  await first.closeAll();
  const chunks = new FakeChunks(state);
  const device = await BufferedDevice.open(chunks);
  const byte = new Uint8Array(1);
  const at = (slot: number, offset: number): number | undefined => {
    device.read(slot, byte, offset);
    return byte[0];
  };
  expect(await device.recover(() => [at(0, 0), at(7, 9), at(1, 50 * KIB), at(4, 63 * KIB)])).toEqual([1, 8, 51, 54]);
  expect(chunks.reads).toBe(0);
  expect(await device.resident(() => [at(6, 303 * KIB), at(6, 200 * KIB)])).toEqual([60, 60]);
  expect(chunks.reads).toBe(1);
});

/** A device that was just opened, with more bytes in a slot than stay in memory. */
async function withLongSlot(): Promise<{ chunks: FakeChunks; device: BufferedDevice }> {
  const state = new ChunkState();
  const first = await BufferedDevice.open(new FakeChunks(state));
  first.write(0, new Uint8Array(6000 * KIB).fill(5), 4 * KIB);
  await first.closeAll();
  const chunks = new FakeChunks(state);
  const device = await BufferedDevice.open(chunks);
  return { chunks, device };
}

test('chunks that were read are dropped when there are too many, but not those of a call under way', async () => {
  const { chunks, device } = await withLongSlot();
  const all = await device.resident(() => image(device));
  expect(all[0]?.[5000 * KIB]).toBe(5);
  const { reads } = chunks;
  await device.resident(() => image(device));
  expect(chunks.reads).toBe(reads + 1);
});

test('a sequential reader gets chunks fetched ahead; a random reader does not, even beside chunks that are here', async () => {
  const read = async ({ device }: { device: BufferedDevice }, index: number): Promise<void> => {
    const at = 4 * KIB + CHUNK_BYTES * (index - 1);
    await device.resident(() => device.read(0, new Uint8Array(KIB), at + 7 * KIB));
  };
  const indexes = Array.from({ length: 80 }, (_, i) => i + 1);
  const [random, sequential] = [await withLongSlot(), await withLongSlot()];
  for (const { device } of [random, sequential]) device.allowSpare(() => 8000 * KIB);
  for (const index of indexes) await read(random, 1 + ((index * 37) % 80));
  for (const index of indexes) await read(sequential, index);
  expect([random.chunks.reads, random.chunks.chunksRead]).toEqual([80, 80]);
  expect([sequential.chunks.reads, sequential.chunks.chunksRead]).toEqual([17, 81]);
});

test('as many of the chunks that were read stay as the host allows', async () => {
  const { chunks, device } = await withLongSlot();
  device.allowSpare(() => 8000 * KIB);
  await device.resident(() => image(device));
  const { reads } = chunks;
  await device.resident(() => image(device));
  expect(chunks.reads).toBe(reads);
});

test('the host is asked after each fetch how much may stay', async () => {
  const { chunks, device } = await withLongSlot();
  let bytes = 8000 * KIB;
  device.allowSpare(() => bytes);
  bytes = 0;
  await device.resident(() => image(device));
  const { chunksRead } = chunks;
  await device.resident(() => image(device));
  expect(chunks.chunksRead).toBeGreaterThan(chunksRead);
});

test('a commit that fails ends all writing, reads continue, and opening again gives the committed bytes', async () => {
  const state = new ChunkState();
  const chunks = new FakeChunks(state);
  const device = await BufferedDevice.open(chunks);
  device.write(0, Uint8Array.of(1, 1, 1), 0);
  await device.committed();
  const failures: string[] = [];
  device.onFailure = ({ kind }) => failures.push(kind);
  chunks.failure = new SlotError('full', 'The quota is used up.');
  device.write(0, Uint8Array.of(2, 2, 2), 0);
  const [one, two] = [device.committed(), device.committed()];
  await expect(one).rejects.toMatchObject({ kind: 'full' });
  await expect(two).rejects.toMatchObject({ kind: 'full' });
  expect(failures).toEqual(['full']);
  for (const call of [() => device.write(0, Uint8Array.of(3), 0), () => device.flush(0), () => device.truncate(0, 0)]) {
    expect(kindOf(call)).toBe('full');
  }
  await expect(device.committed()).rejects.toMatchObject({ kind: 'full' });
  await device.closeAll();
  const again = await BufferedDevice.open(new FakeChunks(state));
  const bytes = await again.resident(() => image(again));
  expect(bytes[0]).toEqual(Uint8Array.of(1, 1, 1));
});

test('after a refused commit no slots are added, until the device has gone back', async () => {
  const state = new ChunkState();
  const chunks = new FakeChunks(state);
  const device = await BufferedDevice.open(chunks);
  device.write(0, Uint8Array.of(1), 0);
  await device.committed();
  chunks.failure = new SlotError('full', 'The quota is used up.');
  device.write(0, Uint8Array.of(2), 0);
  device.flush(0);
  await expect(device.committed()).rejects.toMatchObject({ kind: 'full' });
  chunks.failure = undefined;
  // The device once added slots in a commit behind the refused one. The refused one was then missing in the middle.
  const { commits } = chunks;
  const before = commits.length;
  expect(await device.grow(2)).toBe(0);
  await new Promise((resolve) => setImmediate(resolve));
  expect(commits.length).toBe(before);
  await device.goBack();
  expect(await device.grow(2)).toBe(2);
  await device.committed();
  expect([device.count(), image(device)[0]]).toEqual([10, Uint8Array.of(1)]);
});

test('a change apart that cannot be made is refused, and waits for nothing', async () => {
  const device = await BufferedDevice.open(new FakeChunks());
  const error = new SlotError('io', 'It cannot be made.');
  vi.spyOn(BufferedSlots.prototype, 'writeApart').mockImplementationOnce(() => {
    throw error;
  });
  await expect(device.writeApart(1, Uint8Array.of(1), 4 * KIB, false)).rejects.toBe(error);
});

test('a holder whose store was taken over commits nothing more', async () => {
  const state = new ChunkState();
  const zombie = await BufferedDevice.open(new FakeChunks(state));
  zombie.write(0, Uint8Array.of(1), 0);
  await zombie.committed();
  const heir = await BufferedDevice.open(new FakeChunks(state));
  zombie.write(0, Uint8Array.of(2), 0);
  await expect(zombie.committed()).rejects.toMatchObject({ kind: 'closed' });
  expect((await heir.resident(() => image(heir)))[0]).toEqual(Uint8Array.of(1));
});

test('an attempt to recover that misses bytes is undone before the next one', async () => {
  const state = new ChunkState();
  const first = await BufferedDevice.open(new FakeChunks(state));
  for (let slot = 0; slot < 3; slot++) first.write(slot, new Uint8Array(70 * KIB).fill(slot + 1), 0);
  await first.committed();
  first.write(1, Uint8Array.of(9), 10);
  await first.closeAll();
  const chunks = new FakeChunks(state);
  const device = await BufferedDevice.open(chunks);
  const seen: number[][] = [];
  await device.recover(() => {
    const byte = new Uint8Array(1);
    const values: number[] = [];
    for (let slot = 0; slot < 3; slot++) {
      device.read(slot, byte, 10);
      values.push(byte[0] ?? 0);
      // If this write were not undone, the next attempt would read it.
      device.write(slot, Uint8Array.of(100), 10);
      device.write(slot, Uint8Array.of(100), 69 * KIB);
      if (slot === 0) device.truncate(2, 50 * KIB);
      if (slot === 0) device.truncate(2, 70 * KIB);
    }
    device.read(2, byte, 60 * KIB);
    values.push(byte[0] ?? 0);
    seen.push(values);
  });
  expect(seen).toEqual([[1, 9, 3, 0]]);
  await device.committed();
  expect(chunks.commits.length).toBe(1);
  const bytes = await device.resident(() => image(device));
  expect(bytes.map((slot) => [slot[10], slot[11]])).toEqual(
    [1, 2, 3].map((value) => [100, value]).concat(Array.from({ length: 5 }, () => [undefined, undefined] as never)),
  );
});

/** The slot that only `writeApart` writes to. */
const APART = 5;

/** All bytes of the other slots. */
function shared(device: MemoryDevice | BufferedDevice): Uint8Array[] {
  return image(device).filter((_, slot) => slot !== APART);
}

/** A device, and a device in memory that gets the same calls. */
class Twins {
  readonly #random: (below: number) => number;
  readonly #state = new ChunkState();
  device!: BufferedDevice;
  chunks!: FakeChunks;
  model = new MemoryDevice({ slotsMax: 20 });
  /** The writes apart, one after the other. */
  #apart: Uint8Array[] = [];
  /** The model after each step since the last step that is certainly committed: a crash may leave any of these. */
  #possible: Uint8Array[][] = [];

  constructor(random: (below: number) => number) {
    this.#random = random;
  }

  async open(): Promise<void> {
    this.chunks = new FakeChunks(this.#state);
    this.device = await BufferedDevice.open(this.chunks);
  }

  async committed(): Promise<void> {
    await this.device.committed();
    // After going back, recovered changes are in no commit before the next write.
    if (!this.device.isQuiet) this.#possible = [shared(this.model)];
  }

  async step(): Promise<void> {
    const random = this.#random;
    const slot = random(Math.min(5, this.model.count()));
    const size = this.model.size(slot);
    const kind = random(12);
    if (kind < 6) this.#write(slot, size, kind < 4 ? 300 : 120 * KIB);
    if (kind === 6) {
      const to = random(3) === 0 ? 0 : random(Math.min(size, 300 * KIB) + 100 * KIB);
      this.#both((one) => one.truncate(slot, to));
    }
    if (kind === 7) this.#both((one) => one.flush(slot));
    else if (kind === 8 && this.model.count() < 12) await Promise.all([this.model.grow(1), this.device.grow(1)]);
    else if (kind > 7 && size > 0) await this.#read(slot, random(size), random(80 * KIB));
    this.#possible.push(shared(this.model));
  }

  /** Writes apart during other work. Some writes are refused, and nothing else notices that. */
  async apart(): Promise<void> {
    const bytes = new Uint8Array(100 * KIB + this.#random(200 * KIB)).fill(1 + this.#random(255));
    const isRefused = this.#random(3) === 0;
    this.chunks.refuses = ({ folds, puts }) => isRefused && !folds && puts.some(({ slot }) => slot === APART);
    const at = 4 * KIB + this.#apart.reduce((sum, { length }) => sum + length, 0);
    const writing = this.device.writeApart(APART, bytes, at, false).then(
      () => 'written',
      (error: unknown) => (error as SlotError).kind,
    );
    for (let left = this.#random(4); left > 0; left--) {
      await this.step();
      if (this.#random(2) === 0) await new Promise((resolve) => setImmediate(resolve));
    }
    expect(await writing).toBe(isRefused ? 'full' : 'written');
    this.chunks.refuses = () => false;
    if (isRefused) await this.device.discard(APART);
    this.#apart = isRefused ? [] : [...this.#apart, bytes];
    await this.checkApart();
  }

  /** Everything that was written apart and not refused is there. */
  async checkApart(): Promise<void> {
    const expected = Buffer.concat(this.#apart);
    const found = new Uint8Array(expected.length);
    await this.device.resident(() => this.device.read(APART, found, 4 * KIB));
    expect(Buffer.compare(found, expected)).toBe(0);
  }

  /** Changes under way are lost; committed changes are not. */
  async crash(): Promise<void> {
    await this.open();
    await this.checkApart();
    const left = await this.device.resident(() => shared(this.device));
    expect(this.#possible.some((one) => equal(one, left))).toBe(true);
    this.#become(left);
  }

  /** A commit is refused, whatever is under way. The device goes back to what is kept, and continues. */
  async refuse(): Promise<void> {
    this.chunks.failure = new SlotError('full', 'The quota is used up.');
    this.device.write(0, Uint8Array.of(99), 0);
    await expect(this.device.committed()).rejects.toMatchObject({ kind: 'full' });
    await this.device.goBack();
    const left = await this.device.resident(() => shared(this.device));
    expect(this.#possible.some((one) => equal(one, left))).toBe(true);
    // Recovery writes, cuts included. These writes are in no commit before the next write.
    this.#become(left);
    const byte = new Uint8Array(1);
    await this.device.recover(() => {
      this.device.read(1, byte, 0);
      this.device.write(1, Uint8Array.of(7), 70 * KIB);
      this.device.truncate(2, 100);
    });
    expect(this.device.isQuiet).toBe(true);
    await this.device.committed();
    const commits = this.chunks.commits.length;
    this.model.write(1, Uint8Array.of(7), 70 * KIB);
    this.model.truncate(2, 100);
    const now = await this.device.resident(() => shared(this.device));
    expect(equal(now, shared(this.model))).toBe(true);
    expect(this.chunks.commits.length).toBe(commits);
    this.chunks.failure = undefined;
    this.#possible = [left, now];
  }

  #become(slots: Uint8Array[]): void {
    this.model = new MemoryDevice({ slots: slots.length + 1, slotsMax: 20 });
    slots.forEach((bytes, i) => {
      this.model.write(i < APART ? i : i + 1, bytes, 0);
    });
    this.#possible = [slots];
  }

  #both(call: (device: ManagedDevice) => void): void {
    call(this.model);
    call(this.device);
  }

  #write(slot: number, size: number, lengthMax: number): void {
    const random = this.#random;
    const at = random(3) === 0 ? random(size + 1) : Math.min(size, random(4) === 0 ? 0 : size);
    const bytes = new Uint8Array(1 + random(lengthMax));
    if (random(6) > 0) bytes.fill(1 + random(255));
    this.#both((one) => one.write(slot, bytes, at));
  }

  async #read(slot: number, at: number, length: number): Promise<void> {
    const [mine, theirs] = [new Uint8Array(length), new Uint8Array(length)];
    const read = await this.device.resident(() => this.device.read(slot, mine, at));
    expect(read).toBe(this.model.read(slot, theirs, at));
    expect(Buffer.compare(mine.subarray(0, read), theirs.subarray(0, read))).toBe(0);
  }
}

test.each([1, 2, 3, 4, 5, 6])(
  'a device equals one in memory, in all operations, crashes and refusals (seed %i)',
  { timeout: 60_000 },
  async (seed) => {
    const random = randomFrom(seed);
    const twins = new Twins(random);
    await twins.open();
    await twins.committed();
    for (let round = 0; round < 150; round++) {
      for (let left = random(4); left >= 0; left--) await twins.step();
      const what = random(20);
      if (what < 6) await twins.committed();
      else if (what < 12) await new Promise((resolve) => setImmediate(resolve));
      else if (what < 14) await twins.crash();
      else if (what < 16) await twins.refuse();
      else if (what < 18) await twins.apart();
    }
    await twins.checkApart();
    const { device, model } = twins;
    expect(equal(await device.resident(() => shared(device)), shared(model))).toBe(true);
  },
);
