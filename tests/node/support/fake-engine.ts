/**
 * A stand-in for the engine worker that speaks frames: a sorted map in memory, and a record of the messages.
 *
 * Invariant: it reads and writes frames by their written description, sharing no code with the client, and checks every byte that it
 * receives. Answers come in a later turn, in order; `hold()` keeps them back until `release()`.
 */

import type { Port } from '../../../js/src/client/client.ts';
import type { Request, Response } from '../../../js/src/protocol/messages.ts';

/** One operation as it was sent. */
export interface SentOp {
  readonly request: number;
  readonly op: number;
  readonly level: number;
  /** The number of the snapshot that it reads, opens or closes. */
  readonly snapshot: number;
  readonly key: Uint8Array;
  readonly value: Uint8Array;
}

interface Stored {
  readonly key: Uint8Array;
  readonly value: Uint8Array;
  readonly sequence: number;
}

interface Scan {
  readonly rows: Stored[];
  readonly keys: boolean;
  readonly values: boolean;
}

const order = (a: Uint8Array, b: Uint8Array): number => Buffer.compare(a, b);
const latin1 = (bytes: Uint8Array): string => Buffer.from(bytes).toString('latin1');
const ABSENT = 0xffff_ffff;

/** The error with which a test wants an operation to be answered. */
export interface Fault {
  readonly code: number;
  readonly message: string;
}

/** The engine's end; hand it to a client as its port. */
export class FakeEngine implements Port {
  onmessage: ((event: MessageEvent) => void) | null = null;
  onmessageerror: ((event: MessageEvent) => void) | null = null;
  onerror: ((event: ErrorEvent) => void) | null = null;

  /** Operations of each frame, oldest first. */
  readonly frames: SentOp[][] = [];
  /** The client that sends them; undefined before the first frame. */
  client: number | undefined;
  /** The answers that each frame reported as received. */
  readonly answered: number[] = [];
  /** Sizes of the frames sent and of the answers, in bytes. */
  readonly frameBytes: number[] = [];
  readonly answerBytes: number[] = [];
  readonly messages: Request[] = [];
  readonly openScans = new Map<number, Scan>();
  isTerminated = false;
  /** Answers an operation with an error instead. */
  fault: ((op: SentOp) => Fault | undefined) | undefined;
  /** Answers a message itself; undefined for the usual answer. */
  reply: ((message: Request) => Response | undefined) | undefined;
  /** Changes the bytes of an answer before it is sent. */
  damage: ((frame: ArrayBuffer) => ArrayBuffer) | undefined;
  /** When an entry with this key (as latin1) expires. */
  readonly expiries = new Map<string, number>();

  /** By key as latin1, whose order is the order of the bytes. */
  readonly #rows = new Map<string, Stored>();
  #sequence = 0;
  #isHeld = false;
  readonly #waiting: (() => void)[] = [];
  readonly #runNext = (): void => {
    if (!this.#isHeld && !this.isTerminated) this.#waiting.shift()?.();
  };

  postMessage(message: unknown, transfer: Transferable[]): void {
    // Cloning does what a real port does: transferred buffers are detached here, functions are refused.
    const received: unknown = structuredClone(message, { transfer });
    this.#later(() => this.#receive(received));
  }

  terminate(): void {
    this.isTerminated = true;
  }

  /** Keeps back everything until `release`. */
  hold(): void {
    this.#isHeld = true;
  }

  release(): void {
    this.#isHeld = false;
    for (let i = this.#waiting.length; i > 0; i--) setImmediate(this.#runNext);
  }

  /** The event of a worker whose script fails; without a message, of a script that does not load. */
  crash(message?: string): void {
    this.onerror?.({ message } as ErrorEvent);
  }

  send(message: Response | ArrayBuffer): void {
    if (!this.isTerminated) this.onmessage?.({ data: message } as MessageEvent);
  }

  /** All operations, of whatever frame. */
  get ops(): SentOp[] {
    return this.frames.flat();
  }

  #later(run: () => void): void {
    this.#waiting.push(run);
    setImmediate(this.#runNext);
  }

  #receive(message: unknown): void {
    if (message instanceof ArrayBuffer) return this.send(this.#frame(message));
    const request = message as Request;
    this.messages.push(request);
    const response = this.reply?.(request) ?? this.#usual(request);
    if (response !== undefined) this.send(response);
  }

  #usual(request: Request): Response | undefined {
    switch (request.type) {
      case 'open': {
        const storage = { kind: request.options.storage ?? 'opfs' };
        return {
          type: 'opened',
          id: request.id,
          report: { id: '1', storage, recovery: { state: 'new', records: 0, recordsDropped: 0 } },
        };
      }
      case 'hidden':
      case 'visible':
      case 'ping':
      case 'line':
      case 'returned':
      case 'seek':
      case 'revoked':
      case 'key':
        return undefined;
      case 'list':
        return { type: 'result', id: request.id, value: ['a', 'b'] };
      case 'call':
        return { type: 'result', id: request.id, value: { called: request.method } };
      default:
        return { type: 'result', id: request.id, value: true };
    }
  }

  #frame(frame: ArrayBuffer): ArrayBuffer {
    const reader = new Reader(new Uint8Array(frame));
    if (reader.u32() !== 0x3246_5256) throw new Error('no frame');
    const count = reader.u32();
    const client = reader.u32() + reader.u32() * 2 ** 32;
    if (client !== (this.client ?? client)) throw new Error('not one client');
    this.client = client;
    this.answered.push(reader.u32());
    if (reader.u32() !== 0) throw new Error('reserved bytes are not zero');
    const ops: SentOp[] = [];
    for (let i = 0; i < count; i++) {
      const request = reader.u32();
      const [op, level, flags, moreFlags] = reader.bytes(4) as unknown as [number, number, number, number];
      const snapshot = flags | (moreFlags << 8);
      if (snapshot !== 0 && this.fault === undefined) throw new Error('there are no snapshots here');
      const [keyLen, valueLen] = [reader.u32(), reader.u32()];
      ops.push({ request, op, level, snapshot, key: reader.bytes(keyLen), value: reader.bytes(valueLen) });
      reader.pad();
    }
    reader.end();
    this.frames.push(ops);
    this.frameBytes.push(frame.byteLength);
    const out = new Writer();
    out.u32(0x3246_5256);
    out.u32(count);
    for (const op of ops) this.#answer(op, out);
    const answer = this.damage?.(out.take()) ?? out.take();
    this.answerBytes.push(answer.byteLength);
    return answer;
  }

  #answer(op: SentOp, out: Writer): void {
    const payload = new Writer();
    const fault = this.fault?.(op);
    let status = 0;
    if (fault !== undefined) {
      status = 2;
      payload.u32(fault.code);
      payload.bytes(new TextEncoder().encode(fault.message));
    } else status = this.#run(op, payload) ? 0 : 1;
    out.u32(op.request);
    out.u32(status);
    out.u32(payload.size);
    out.u32(0);
    out.bytes(new Uint8Array(payload.take()));
    out.pad();
  }

  /** Runs one operation; false when the key is missing. */
  #run(op: SentOp, out: Writer): boolean {
    switch (op.op) {
      case 1:
      case 2:
      case 3:
        return this.#read(op, out);
      case 4:
        this.#put(op.key, op.value);
        return this.#receipt(op, out);
      case 5:
        this.#drop(op.key);
        return this.#receipt(op, out);
      case 6:
        this.#batch(new Reader(op.value));
        return this.#receipt(op, out);
      case 7:
        return this.#scanOpen(new Reader(op.key).u32(), new Reader(op.value), out);
      case 8:
        return this.#scanNext(new Reader(op.key).u32(), new Reader(op.value).u32(), out);
      case 9:
        if (!this.openScans.delete(new Reader(op.key).u32())) throw new Error('a cursor was closed twice');
        return true;
      case 10:
        return this.#getMany(new Reader(op.value), out);
      case 11:
        this.#dropRange(op.key, op.value);
        return this.#receipt(op, out);
      case 12:
        return true;
      default:
        throw new Error(`unknown operation ${op.op}`);
    }
  }

  #find(key: Uint8Array): Stored | undefined {
    return this.#rows.get(latin1(key));
  }

  #read(op: SentOp, out: Writer): boolean {
    const row = this.#find(op.key);
    if (row === undefined) return false;
    if (op.op === 3) {
      out.u64(row.sequence);
      out.f64(this.expiries.get(latin1(row.key)) ?? 0);
    }
    if (op.op !== 2) out.bytes(row.value);
    return true;
  }

  #getMany(reader: Reader, out: Writer): boolean {
    const count = reader.u32();
    out.u32(count);
    for (let i = 0; i < count; i++) {
      const row = this.#find(reader.bytes(reader.u32()));
      reader.pad();
      out.u32(row === undefined ? ABSENT : row.value.length);
      if (row !== undefined) out.bytes(row.value);
      out.pad();
    }
    reader.end();
    return true;
  }

  #receipt(op: SentOp, out: Writer): boolean {
    if (op.level < 1 || op.level > 3) throw new Error('a write without a level');
    out.u64(this.#sequence);
    out.u32(op.level);
    return true;
  }

  #put(key: Uint8Array, value: Uint8Array): void {
    this.#rows.set(latin1(key), { key: key.slice(), value: value.slice(), sequence: ++this.#sequence });
  }

  #drop(key: Uint8Array): void {
    this.#sequence++;
    this.#rows.delete(latin1(key));
  }

  #dropRange(start: Uint8Array, end: Uint8Array): void {
    this.#sequence++;
    for (const [name, { key }] of this.#rows) {
      if (order(key, start) >= 0 && (end.length === 0 || order(key, end) < 0)) this.#rows.delete(name);
    }
  }

  #batch(reader: Reader): void {
    for (let left = reader.u32(); left > 0; left--) {
      const kind = reader.u32();
      const [keyLen, valueLen] = [reader.u32(), reader.u32()];
      const [key, value] = [reader.bytes(keyLen), reader.bytes(valueLen)];
      reader.pad();
      if (kind === 1) this.#put(key, value);
      else if (kind === 2) this.#dropRange(key, value);
      else if (kind === 0) this.#drop(key);
      else throw new Error('unknown kind');
    }
    reader.end();
  }

  #scanOpen(cursor: number, reader: Reader, out: Writer): boolean {
    if (cursor === 0 || this.openScans.has(cursor)) throw new Error('the number of a scan is not free');
    const flags = reader.u32();
    const [limit, batchBytes, lowerLen, upperLen] = [reader.u32(), reader.u32(), reader.u32(), reader.u32()];
    const [lower, upper] = [reader.bytes(lowerLen), reader.bytes(upperLen)];
    reader.end();
    const isIn = ({ key }: Stored): boolean => {
      const above = flags & 8 ? order(key, lower) : 1;
      const below = flags & 32 ? order(upper, key) : 1;
      return above >= (flags & 16 ? 1 : 0) && below >= (flags & 64 ? 1 : 0);
    };
    let rows = [...this.#rows.values()].filter(isIn).sort((a, b) => order(a.key, b.key));
    if (flags & 1) rows = rows.reverse();
    if (limit !== ABSENT) rows = rows.slice(0, limit);
    this.openScans.set(cursor, { rows, keys: (flags & 2) !== 0, values: (flags & 4) !== 0 });
    out.u64(this.#sequence);
    out.u64(1);
    return this.#scanNext(cursor, batchBytes, out);
  }

  #scanNext(cursor: number, batchBytes: number, out: Writer): boolean {
    const scan = this.openScans.get(cursor);
    if (scan === undefined) throw new Error('unknown cursor');
    const batch: Stored[] = [];
    let size = 0;
    while (scan.rows.length > 0 && (size < batchBytes || batch.length === 0)) {
      const row = scan.rows.shift() as Stored;
      batch.push(row);
      size += (scan.keys ? row.key.length : 0) + (scan.values ? row.value.length : 0) + 8;
    }
    if (scan.rows.length === 0) this.openScans.delete(cursor);
    out.u32(scan.rows.length === 0 ? 0 : cursor);
    out.u32(batch.length);
    const keys = scan.keys ? batch.map((row) => row.key) : [];
    const values = scan.values ? batch.map((row) => row.value) : [];
    for (const parts of [keys, values]) out.u32(parts.reduce((sum, part) => sum + part.length, 0));
    for (const parts of [keys, values]) {
      let end = 0;
      for (const part of parts) {
        end += part.length;
        out.u32(end);
      }
    }
    for (const parts of [keys, values]) {
      for (const part of parts) out.bytes(part);
      out.pad();
    }
    return true;
  }
}

class Reader {
  #at = 0;
  readonly #bytes: Uint8Array;
  readonly #view: DataView;

  constructor(bytes: Uint8Array) {
    this.#bytes = bytes;
    this.#view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  }

  u32(): number {
    this.#at += 4;
    return this.#view.getUint32(this.#at - 4, true);
  }

  bytes(count: number): Uint8Array {
    if (count > this.#bytes.length - this.#at) throw new Error('bytes are missing');
    this.#at += count;
    return this.#bytes.subarray(this.#at - count, this.#at);
  }

  pad(): void {
    while (this.#at % 4 !== 0) if (this.bytes(1)[0] !== 0) throw new Error('padding is not zero');
  }

  end(): void {
    if (this.#at !== this.#bytes.length) throw new Error('bytes are left over');
  }
}

/** Writes the little-endian layouts of frames. */
class Writer {
  readonly #bytes: number[] = [];

  get size(): number {
    return this.#bytes.length;
  }

  u32(value: number): void {
    this.#bytes.push(value & 255, (value >>> 8) & 255, (value >>> 16) & 255, value >>> 24);
  }

  u64(value: number): void {
    this.u32(value >>> 0);
    this.u32(Math.floor(value / 2 ** 32));
  }

  f64(value: number): void {
    this.bytes(new Uint8Array(new Float64Array([value]).buffer));
  }

  bytes(bytes: Uint8Array): void {
    for (const byte of bytes) this.#bytes.push(byte);
  }

  pad(): void {
    while (this.#bytes.length % 4 !== 0) this.#bytes.push(0);
  }

  take(): ArrayBuffer {
    return Uint8Array.from(this.#bytes).buffer;
  }
}
