/**
 * The bytes of an export: a header, blocks of entries, an end. FORMAT.md has the same picture.
 *
 *   header 72 B  "VRVX" | u16 version, 2 if it is encrypted | u16 0 | id 16 B | u64 sequence | u64 version of the data | digest
 *   block        u32 body length | u32 entries, bit 31 if the body is encrypted | 8 B check | body | digest
 *   body         { u8 1 if an expiry follows | varint key length | varint value length | [u64 expires] | key | value }*
 *   end          a block without entries whose body is u64 entries | u64 blocks: those before it
 *   key slots    only in an encrypted export: a block without entries behind the header, whose body is key slots (encryption/slots.ts)
 *
 *   digest       SHA-256 of the digest before it and of all of the block up to here (of a header: of the 40 B before)
 *   check        the first 8 B of the SHA-256 of the digest before and of the 8 B of the head
 *
 * Invariant: digests form a chain. So a block that is changed, missing, moved or from another export does not verify, and
 * neither does anything after it. A length is used only after its check has been verified.
 */

import { joined } from '../codec/joined.ts';
import { ByteSink } from '../codec/sink.ts';
import { VarveError } from '../errors.ts';
import { isExport, MAGIC } from './magic.ts';

/** The format of a plain export; that of an encrypted one is the next. */
const FORMAT_VERSION = 1;
export const HEADER_BYTES = 72;
export const HEAD_BYTES = 16;
export const DIGEST_BYTES = 32;
export const ID_BYTES = 16;
/** The bytes before a body that its digest also covers. */
export const ROOM_BYTES: number = DIGEST_BYTES + HEAD_BYTES;
/** The most bytes of a body: the longest entry, 128 MiB and 64 KiB, may follow shorter entries, which are scanned 256 KiB at a time. */
export const BODY_BYTES_MAX = 2 ** 27 + 2 ** 19;

const HEADER_HASHED = HEADER_BYTES - DIGEST_BYTES;
const CHECK_BYTES = 8;

/** The header of an export. */
interface Header {
  /** Random bytes that distinguish this export from any other. */
  readonly id: Uint8Array;
  /** The sequence of the last write in it. */
  readonly sequence: number;
  /** The version that its store had been opened with; 0 for none. */
  readonly version: number;
  /** Whether key slots follow, and every block behind them is encrypted. */
  readonly isEncrypted: boolean;
}

/** Encrypts and decrypts bodies. The number of a block is the number of blocks with entries before it. */
export interface BodyCipher {
  seal(number: number, entries: number, body: Uint8Array): Promise<Uint8Array>;
  /** Rejects with anything if the body was not sealed with this key, as this block. */
  open(number: number, entries: number, body: Uint8Array): Promise<Uint8Array>;
}

/** The bit of a block's number of entries that marks its body as encrypted. */
const SEALED = 0x8000_0000;

/** SHA-256. Rejects with `VARVE_UNSUPPORTED` if it is unavailable, which is so on pages that are not served securely. */
export async function sha256(bytes: Uint8Array): Promise<Uint8Array> {
  const { subtle } = globalThis.crypto ?? {};
  if (subtle === undefined) {
    throw new VarveError(
      'VARVE_UNSUPPORTED',
      'Exports need crypto.subtle, which a page has over HTTPS and on localhost.',
    );
  }
  return new Uint8Array(await subtle.digest('SHA-256', bytes as Uint8Array<ArrayBuffer>));
}

/** The bytes of a header. */
export async function encodeHeader({ id, sequence, version, isEncrypted }: Header): Promise<Uint8Array> {
  const sink = new ByteSink(HEADER_BYTES);
  sink.append(MAGIC);
  sink.u32(FORMAT_VERSION + Number(isEncrypted));
  sink.append(id);
  putU64(sink, sequence);
  putU64(sink, version);
  sink.append(await sha256(sink.copy()));
  return sink.copy();
}

/** Reads a header. Throws `VARVE_CORRUPT` if the bytes are not a header, `VARVE_VERSION` if newer code wrote it. */
export async function decodeHeader(bytes: Uint8Array): Promise<Header> {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
  if (!isExport(bytes)) throw notExport();
  const digest = await sha256(bytes.subarray(0, HEADER_HASHED));
  if (!areEqual(digest, digestOf(bytes))) throw damaged(0, 'header checksum');
  const format = view.getUint32(4, true);
  if (format !== FORMAT_VERSION && format !== FORMAT_VERSION + 1) {
    throw new VarveError(
      'VARVE_VERSION',
      `The export has format ${format & 0xffff}; this code reads up to ${FORMAT_VERSION + 1}.`,
    );
  }
  const id = bytes.slice(8, 8 + ID_BYTES);
  return { id, sequence: getU64(view, 24), version: getU64(view, 32), isEncrypted: format !== FORMAT_VERSION };
}

/** Collects the entries of one block, after the digest of the block before it. */
export class BlockWriter {
  readonly #sink = new ByteSink(64 * 1024);
  #entries = 0;

  /** Starts a block. */
  begin(previous: Uint8Array): void {
    const sink = this.#sink;
    sink.at = 0;
    sink.append(previous);
    for (let words = HEAD_BYTES / 4; words > 0; words--) sink.u32(0);
    this.#entries = 0;
  }

  /** Adds an entry; `stored` is its expiry (u64, 0 for none) and its value. */
  entry(key: Uint8Array, stored: Uint8Array): void {
    const sink = this.#sink;
    const expires = stored.subarray(0, 8);
    const hasExpiry = expires.some((byte) => byte !== 0);
    sink.byte(hasExpiry ? 1 : 0);
    putVarint(sink, key.length);
    putVarint(sink, stored.length - 8);
    if (hasExpiry) sink.append(expires);
    sink.append(key);
    sink.append(stored.subarray(8));
    this.#entries++;
  }

  /** Adds the contents of an end block. */
  end(entries: number, blocks: number): void {
    putU64(this.#sink, entries);
    putU64(this.#sink, blocks);
  }

  /** Adds the contents of a block of key slots. */
  slots(slots: Uint8Array): void {
    this.#sink.append(slots);
  }

  /** A copy of the bytes of the block, followed by its digest. With a cipher its body is encrypted, as that of the block `number`. */
  async finish(cipher?: BodyCipher, number = 0): Promise<Uint8Array> {
    const sink = this.#sink;
    if (cipher !== undefined) {
      const sealed = await cipher.seal(number, this.#entries, sink.bytes.subarray(ROOM_BYTES, sink.at));
      sink.at = ROOM_BYTES;
      sink.append(sealed);
    }
    sink.setU32(DIGEST_BYTES, sink.at - ROOM_BYTES);
    sink.setU32(DIGEST_BYTES + 4, (this.#entries | (cipher === undefined ? 0 : SEALED)) >>> 0);
    const check = await checkOf(sink.bytes.slice(0, DIGEST_BYTES + 8));
    sink.bytes.set(check, DIGEST_BYTES + 8);
    sink.append(await sha256(sink.bytes.subarray(0, sink.at)));
    return sink.copy(DIGEST_BYTES);
  }
}

/** The head of a block: bytes of its body, entries in it, and whether the body is encrypted. */
export interface Head {
  readonly length: number;
  readonly entries: number;
  readonly isSealed: boolean;
}

/** Reads a head at `offset` of the export. Throws `VARVE_CORRUPT`. */
export async function decodeHead(previous: Uint8Array, head: Uint8Array, offset: number): Promise<Head> {
  const check = await checkOf(joined([previous, head.subarray(0, HEAD_BYTES - CHECK_BYTES)]));
  if (!areEqual(check, head.subarray(HEAD_BYTES - CHECK_BYTES))) throw damaged(offset, 'the head of a block');
  const view = new DataView(head.buffer, head.byteOffset, head.length);
  const length = view.getUint32(0, true);
  if (length > BODY_BYTES_MAX) throw damaged(offset, 'a block that is too long');
  const entries = view.getUint32(4, true);
  return { length, entries: entries % SEALED, isSealed: entries >= SEALED };
}

/** Verifies a block: its body and digest follow `ROOM_BYTES` of room. Returns the body. Throws `VARVE_CORRUPT`. */
export async function verifyBlock(
  previous: Uint8Array,
  head: Uint8Array,
  block: Uint8Array,
  offset: number,
): Promise<Uint8Array> {
  block.set(previous);
  block.set(head, DIGEST_BYTES);
  const end = block.length - DIGEST_BYTES;
  const digest = await sha256(block.subarray(0, end));
  if (!areEqual(digest, digestOf(block))) throw damaged(offset, 'the checksum of a block');
  return block.subarray(ROOM_BYTES, end);
}

/** Receives one entry of a body: its key and value in their stored form, and its expiry as the bytes of a u64. */
type EachEntry = (key: Uint8Array, value: Uint8Array, expires: Uint8Array | undefined) => void;

/** Reads the entries of a verified body. Throws `VARVE_CORRUPT` unless their number matches the head and they fill the body. */
export function readEntries(body: Uint8Array, entries: number, offset: number, each: EachEntry): void {
  let at = 0;
  const take = (length: number): Uint8Array => {
    if (length > body.length - at) throw damaged(offset, 'the entries of a block');
    at += length;
    return body.subarray(at - length, at);
  };
  const varint = (): number => {
    let value = 0;
    for (let scale = 1; ; scale *= 128) {
      const byte = take(1)[0] as number;
      value += (byte & 0x7f) * scale;
      if (byte < 0x80) return value;
      if (scale > 2 ** 35) throw damaged(offset, 'the entries of a block');
    }
  };
  for (let i = 0; i < entries; i++) {
    const flags = take(1)[0] as number;
    if (flags > 1) throw damaged(offset, 'the entries of a block');
    const [keyLength, valueLength] = [varint(), varint()];
    const expires = flags === 1 ? take(8) : undefined;
    each(take(keyLength), take(valueLength), expires);
  }
  if (at !== body.length) throw damaged(offset, 'the entries of a block');
}

/** The contents of an end block. */
export function readEnd(body: Uint8Array, offset: number): { entries: number; blocks: number } {
  if (body.length !== 16) throw damaged(offset, 'its end');
  const view = new DataView(body.buffer, body.byteOffset, body.length);
  return { entries: getU64(view, 0), blocks: getU64(view, 8) };
}

/** The last bytes of a header or a block. */
export function digestOf(bytes: Uint8Array): Uint8Array {
  return bytes.slice(bytes.length - DIGEST_BYTES);
}

/** The error of an export that changed after it was written. */
export function damaged(offset: number, what: string): VarveError {
  const intact = offset === 0 ? 'Nothing of it was read' : 'The part before it is intact';
  return new VarveError(
    'VARVE_CORRUPT',
    `The export is damaged at byte ${offset}: ${what}. ${intact}; get another copy and continue with it.`,
  );
}

/** The error of bytes that are not an export. */
export function notExport(): VarveError {
  return new VarveError(
    'VARVE_CORRUPT',
    'This is no export: its first bytes are others. Import the unchanged output of export().',
  );
}

/** Appends a u64 below 2^53. */
export function putU64(sink: ByteSink, value: number): void {
  sink.u32(value >>> 0);
  sink.u32(Math.floor(value / 2 ** 32));
}

/** A u64; numbers above 2^53 lose their last bits. */
export function getU64(view: DataView, at: number): number {
  return view.getUint32(at, true) + view.getUint32(at + 4, true) * 2 ** 32;
}

/** Whether two arrays contain the same bytes. */
export function areEqual(a: Uint8Array, b: Uint8Array): boolean {
  return a.length === b.length && a.every((byte, i) => byte === b[i]);
}

function putVarint(sink: ByteSink, value: number): void {
  let left = value;
  for (; left >= 128; left = Math.floor(left / 128)) sink.byte((left % 128) | 0x80);
  sink.byte(left);
}

async function checkOf(bytes: Uint8Array): Promise<Uint8Array> {
  return (await sha256(bytes)).subarray(0, CHECK_BYTES);
}
