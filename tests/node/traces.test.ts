/**
 * Recorded traces, replayed in the compiled WebAssembly. Each request gets the same response as from the native engine, and leaves the
 * same bytes in every slot. The traces have snapshots, transactions with conflicts, deleted ranges, values that expire as time passes,
 * and checks of the open store.
 */

import { execFile } from 'node:child_process';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { beforeAll, expect, test, vi } from 'vitest';
import { MemoryDevice } from '../../js/src/storage/memory.ts';
import { readSlot, runCheck, survey } from '../../js/src/tools/check.ts';
import { loadTools } from '../../js/src/tools/instance.ts';
import { attempt } from '../../js/src/wasm/call.ts';
import { loadEngine } from '../../js/src/wasm/compile.ts';
import type { Engine } from '../../js/src/wasm/engine.ts';
import { instantiate } from '../../js/src/wasm/instantiate.ts';
import { tools, wasm } from './support/engine.ts';

// Without the tests of the engine before it, cargo compiles the simulator first.
vi.setConfig({ hookTimeout: 900_000 });

/** The names in `crates/varve-sim/src/record.rs`: both sides open the store alike. */
const SLOTS = 96;
const MEMORY_BYTES = 64 * 1024;
const START = 1_000_000;
const STORE_ID = new Uint8Array(16).fill(7);

const SEEDS = 12;

/** A check that does not know how far the newest log was written. */
const NO_LOG_END = -1;

/** The simulator as the tests of the engine have built it, so that it is not compiled a second time. */
const CARGO = ['run', '--quiet', '-p', 'varve-sim', '--features', 'varve/mutants', '--'];

const recordings: Buffer[] = [];
let engine: Engine;
let toolsModule: WebAssembly.Module;

beforeAll(async () => {
  engine = instantiate(await loadEngine(wasm));
  toolsModule = await loadTools(tools);
  const directory = await mkdtemp(join(tmpdir(), 'varve-traces-'));
  for (let seed = 0; seed < SEEDS; seed++) {
    const file = join(directory, `${seed}.trace`);
    await promisify(execFile)('cargo', [...CARGO, '--record', file, '--from', String(seed)]);
    recordings.push(await readFile(file));
  }
  await rm(directory, { recursive: true });
});

/** Reads a recording. */
class Steps {
  readonly #bytes: Buffer;
  #at = 0;

  constructor(bytes: Buffer) {
    this.#bytes = bytes;
  }

  get left(): boolean {
    return this.#at < this.#bytes.length;
  }

  u32(): number {
    this.#at += 4;
    return this.#bytes.readUInt32LE(this.#at - 4);
  }

  padded(): Buffer {
    const length = this.u32();
    const bytes = this.#bytes.subarray(this.#at, this.#at + length);
    this.#at += Math.ceil(length / 4) * 4;
    return bytes;
  }
}

/** Requests of a frame that were refused: in memory, because of a conflict. */
function refusals(response: Uint8Array): number {
  const view = new DataView(response.buffer, response.byteOffset, response.byteLength);
  let refused = 0;
  for (let at = 8; at < view.byteLength; at += 16 + Math.ceil(view.getUint32(at + 8, true) / 4) * 4)
    refused += Number(view.getUint8(at + 4) > 1);
  return refused;
}

/** The engine on a memory device, driven by the recording. */
class Replay {
  readonly #device = new MemoryDevice({ slots: SLOTS, slotsMax: SLOTS });
  readonly #id = engine.devices.register(this.#device);
  #h = this.#open(1, START);
  frames = 0;
  slots = 0;
  checks = 0;
  conflicts = 0;

  #open(entropy: number, now: number): number {
    const entropyBytes = new Uint8Array(8);
    new DataView(entropyBytes.buffer).setUint32(0, entropy, true);
    engine.memory.put(Buffer.concat([STORE_ID, entropyBytes]));
    return attempt(engine, () => engine.exports.varve_open(this.#id, MEMORY_BYTES, SLOTS, 1, 0, now));
  }

  frame(request: Buffer): Uint8Array {
    const { exports, memory } = engine;
    memory.put(request);
    expect(exports.varve_frame(this.#h, request.length, 0)).toBe(0);
    this.frames++;
    const response = memory.takeOut();
    this.conflicts += refusals(response);
    return response;
  }

  slices(entries: number): void {
    while (attempt(engine, () => engine.exports.varve_run_slice(this.#h, entries)) === 1);
  }

  freeze(): void {
    attempt(engine, () => engine.exports.varve_freeze(this.#h));
  }

  merge(): void {
    attempt(engine, () => engine.exports.varve_ask_for_compaction(this.#h));
  }

  close(): void {
    attempt(engine, () => engine.exports.varve_close(this.#h));
  }

  reopen(entropy: number, now: number): void {
    this.close();
    this.#h = this.#open(entropy, now);
  }

  time(now: number): void {
    engine.exports.varve_now(this.#h, now);
  }

  /** The counts of a check of the open store, in the order of a recording. */
  async check(): Promise<number[]> {
    const read = (slot: number, at: number, length: number) => readSlot(this.#device, slot, at, length);
    const { tables, blocks, entries, segments, records, bytes, problems } = await runCheck(
      toolsModule,
      survey(this.#device, NO_LOG_END),
      read,
    );
    this.checks++;
    return [tables, blocks, entries, segments, records, bytes, problems.length];
  }

  slot(slot: number): Buffer {
    const bytes = Buffer.alloc(this.#device.size(slot));
    this.#device.read(slot, bytes, 0);
    this.slots += Number(bytes.length > 0);
    return bytes;
  }

  end(): void {
    engine.devices.unregister(this.#id);
  }
}

/** Runs one step of a recording; returns false for a step that only a closed store can take. */
async function perform(run: Replay, kind: number, payload: Buffer, steps: Steps): Promise<boolean> {
  if (kind === 0) {
    const expected = steps.padded();
    if (Buffer.compare(run.frame(payload), expected) !== 0)
      throw new Error(`frame ${run.frames} is answered otherwise`);
  } else if (kind === 1) run.slices(payload.readUInt32LE());
  else if (kind === 2) run.freeze();
  else if (kind === 3) run.merge();
  else if (kind === 4) run.reopen(payload.readUInt32LE(), payload.readUInt32LE(4));
  else if (kind === 6) run.time(payload.readUInt32LE());
  else if (kind === 7) {
    const expected = Array.from({ length: payload.length / 4 }, (_, at) => payload.readUInt32LE(4 * at));
    expect(await run.check()).toEqual(expected);
  } else return false;
  return true;
}

async function replay(steps: Steps): Promise<Replay> {
  const run = new Replay();
  let closed = false;
  while (steps.left) {
    const kind = steps.u32();
    const payload = steps.padded();
    if (await perform(run, kind, payload, steps)) continue;
    if (!closed) run.close();
    closed = true;
    const slot = payload.readUInt32LE();
    if (Buffer.compare(run.slot(slot), payload.subarray(4)) !== 0) throw new Error(`slot ${slot} holds other bytes`);
  }
  run.end();
  return run;
}

test('give the same responses and the same files as natively', async () => {
  let frames = 0;
  let slots = 0;
  let checks = 0;
  let conflicts = 0;
  for (const recording of recordings) {
    const run = await replay(new Steps(recording));
    frames += run.frames;
    slots += run.slots;
    checks += run.checks;
    conflicts += run.conflicts;
  }
  expect(frames).toBeGreaterThan(SEEDS * 100);
  expect(slots).toBeGreaterThan(SEEDS * 5);
  expect(conflicts).toBeGreaterThan(SEEDS);
  expect(checks).toBeGreaterThanOrEqual(SEEDS);
});

test('report a response that differs', async () => {
  const recording = Buffer.from(recordings[0] as Buffer);
  const first = recording.readUInt32LE(4);
  const response = 8 + Math.ceil(first / 4) * 4 + 4;
  recording.writeUInt8(recording.readUInt8(response + 12) ^ 1, response + 12);
  await expect(replay(new Steps(recording))).rejects.toThrow('frame 1 is answered otherwise');
});
