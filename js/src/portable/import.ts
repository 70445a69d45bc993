/**
 * Reads an export into a store.
 *
 * Each block is verified and then applied as one batch, together with a record of the progress. So an import that was
 * interrupted, by an error, a closed tab or a power failure, continues after the last block that is in the store, if nobody has
 * written to the store since. A source that can begin anywhere begins there. Any other source is read again from its start: blocks that
 * are in the store already are verified and skipped.
 *
 * Invariant: no part of a block is applied before the whole block has been verified; then all of it is applied. If other keys of the
 * store are derived from imported entries, one batch writes the first such entry and marks the derived keys as out of date.
 */

import { decodeKey } from '../codec/key-reader.ts';
import { KEY_BYTES_MAX } from '../codec/plain-key.ts';
import { RESERVED } from '../codec/reserved-key.ts';
import { ByteSink } from '../codec/sink.ts';
import { type UserKey, userKeyOf } from '../encryption/user-key.ts';
import { hasCode, VarveError } from '../errors.ts';
import { durabilityOf, type Known, WRITE } from '../options.ts';
import { BatchWriter } from '../protocol/batch-writer.ts';
import { rawBytes } from '../protocol/frame-writer.ts';
import { readVersion, VERSION_KEY, versionBytes } from '../protocol/version.ts';
import { DERIVED_KEY, type Derivation, hasPrefix, isDerived, MARK, readDerivations } from '../transaction/derived.ts';
import type { SetItemOptions } from '../types.ts';
import {
  areEqual,
  type BodyCipher,
  DIGEST_BYTES,
  damaged,
  decodeHead,
  decodeHeader,
  digestOf,
  getU64,
  HEAD_BYTES,
  HEADER_BYTES,
  type Head,
  notExport,
  ROOM_BYTES,
  readEnd,
  readEntries,
  verifyBlock,
} from './block.ts';
import { ByteSource } from './byte-source.ts';
import { cipherFor } from './cipher.ts';
import { decodeRecord, encodeRecord, IMPORT_KEY, type ImportRecord } from './import-record.ts';
import { isExport } from './magic.ts';
import type { RawEntry, RawStore } from './raw-store.ts';
import type { ImportOptions, ImportReport, ImportSource } from './types.ts';

const IMPORT: Known<ImportOptions> = { ...WRITE, merge: 1, encryption: 1, onProgress: 1 };

/** The first size of the memory of a batch. */
const BATCH_BYTES = 64 * 1024;

/** Imports an export; resolves when everything is on disk. */
export async function importFrom(
  raw: RawStore,
  source: ImportSource,
  options: ImportOptions = {},
): Promise<ImportReport> {
  durabilityOf(options, IMPORT);
  const { signal, merge = false, encryption } = options;
  const user = encryption && (await userKeyOf(encryption));
  const wasEmpty = await isEmpty(raw);
  const record = wasEmpty ? undefined : await takeRecord(raw);
  const { bytes, at, cipher } = await begin(source, record, user, signal);
  try {
    const resumedAt = record !== undefined && areEqual(record.id, at.id) ? record.offset : 0;
    if (resumedAt === 0 && !wasEmpty && !merge) throw notEmpty();
    await checkVersion(raw, at.version);
    const end = await applyBlocks(raw, { bytes, at, cipher }, resumedAt, options);
    const last = new BatchWriter();
    last.delete(rawBytes, IMPORT_KEY);
    if (at.version > 0) set(last, VERSION_KEY, versionBytes(at.version));
    await raw.commit(last.view(), 'strict');
    return { ...end, resumedAt };
  } finally {
    bytes.close();
  }
}

/**
 * The record of an interrupted import, if it was the last write to the store: then all that was imported is still there. Another record
 * is removed, because somebody may have deleted a part of that. Each write has the sequence after the one before it. The record is there
 * all the time, so an import that ends meanwhile loses nothing.
 */
async function takeRecord(raw: RawStore): Promise<ImportRecord | undefined> {
  const found = await raw.get(IMPORT_KEY, 0);
  if (found === undefined) return undefined;
  const record = decodeRecord(found);
  const next = found.sequence + 1;
  const batch = new BatchWriter();
  const ifSequence = found.sequence;
  if (record === undefined) batch.delete(rawBytes, IMPORT_KEY, { ifSequence });
  else set(batch, IMPORT_KEY, encodeRecord(record, next), { ifSequence });
  try {
    const { sequence } = await raw.commit(batch.view(), undefined);
    if (record === undefined || sequence === next) return record;
    const removal = new BatchWriter();
    removal.delete(rawBytes, IMPORT_KEY, { ifSequence: sequence });
    await raw.commit(removal.view(), undefined);
  } catch (error) {
    // Another import has gone on since.
    if (!hasCode(error, 'VARVE_CONFLICT')) throw error;
  }
  return undefined;
}

/** An export that is read. */
interface Reading {
  readonly bytes: ByteSource;
  /** After its header, or where the import stopped. */
  readonly at: ImportRecord;
  /** Decrypts its blocks; undefined if it is not encrypted. */
  readonly cipher: BodyCipher | undefined;
}

/** Begins to read: where the import stopped if the source can begin there, and otherwise at the start. */
async function begin(
  source: ImportSource,
  record: ImportRecord | undefined,
  user: UserKey | undefined,
  signal: AbortSignal | undefined,
): Promise<Reading> {
  if (source instanceof Blob) return begin((offset) => source.slice(offset).stream(), record, user, signal);
  if (typeof source !== 'function') return fromStart(new ByteSource(source, signal), user);
  let cipher: BodyCipher | undefined;
  if (record !== undefined && user !== undefined) {
    // The key slots are at the start.
    const start = await fromStart(new ByteSource(source(0), signal), user);
    if (!areEqual(start.at.id, record.id)) return start;
    start.bytes.close();
    cipher = start.cipher;
  }
  if (record !== undefined) {
    const bytes = new ByteSource(source(record.offset), signal);
    try {
      const head = await bytes.take(HEAD_BYTES);
      await decodeHead(record.digest, head, record.offset);
      bytes.back(head);
      return { bytes, at: record, cipher };
    } catch (error) {
      bytes.close();
      // It may be another export; its header will show that.
      if (!hasCode(error, 'VARVE_CORRUPT')) throw error;
    }
  }
  return fromStart(new ByteSource(source(0), signal), user);
}

async function fromStart(bytes: ByteSource, user: UserKey | undefined): Promise<Reading> {
  try {
    const header = await bytes.take(HEADER_BYTES);
    if (header.length < HEADER_BYTES) throw isExport(header) ? truncated(header.length) : notExport();
    const { id, version, isEncrypted } = await decodeHeader(header);
    const at = { id, version, offset: HEADER_BYTES, entries: 0, blocks: 0, digest: digestOf(header) };
    if (!isEncrypted && user === undefined) return { bytes, at, cipher: undefined };
    if (user === undefined) throw encrypted();
    if (!isEncrypted) {
      throw new VarveError('VARVE_KEY', 'The export is not encrypted. Import it without the option encryption.');
    }
    const { body, digest, end } = await takeBlock(bytes, at);
    const cipher = await cipherFor(body, user, at.digest);
    return { bytes, at: { ...at, offset: end, digest }, cipher };
  } catch (error) {
    bytes.close();
    throw error;
  }
}

/** Takes and verifies the block at a position. */
async function takeBlock(
  bytes: ByteSource,
  { offset, digest }: ImportRecord,
): Promise<Head & { body: Uint8Array; digest: Uint8Array; end: number }> {
  const head = await bytes.take(HEAD_BYTES);
  if (head.length < HEAD_BYTES) throw truncated(offset + head.length);
  const { length, entries, isSealed } = await decodeHead(digest, head, offset);
  const block = await bytes.take(length + DIGEST_BYTES, ROOM_BYTES);
  const end = offset + HEAD_BYTES + block.length - ROOM_BYTES;
  if (block.length < ROOM_BYTES + length + DIGEST_BYTES) throw truncated(end);
  const body = await verifyBlock(digest, head, block, offset);
  return { length, entries, isSealed, body, digest: digestOf(block), end };
}

/** Decrypts the body of a verified block, if the export is encrypted. */
async function opened(
  { entries, isSealed, body }: Head & { body: Uint8Array },
  { blocks, offset }: ImportRecord,
  cipher: BodyCipher | undefined,
): Promise<Uint8Array> {
  if (cipher === undefined) {
    if (isSealed) throw encrypted();
    return body;
  }
  try {
    if (isSealed) return await cipher.open(blocks, entries, body);
  } catch {
    // Somebody wrote it who had no key.
  }
  throw damaged(offset, 'the encryption of a block');
}

/** Applies the blocks that end after `applied`, and verifies those before it. */
async function applyBlocks(
  raw: RawStore,
  { bytes, at: start, cipher }: Reading,
  applied: number,
  { signal, durability, onProgress }: ImportOptions,
): Promise<{ entries: number; bytes: number }> {
  let at = start;
  for (;;) {
    signal?.throwIfAborted();
    const { offset } = at;
    const block = await takeBlock(bytes, at);
    const { entries, end, digest } = block;
    const body = await opened(block, at, cipher);
    if (entries === 0) {
      const counted = readEnd(body, offset);
      if (counted.entries !== at.entries || counted.blocks !== at.blocks) throw damaged(offset, 'its end');
      if ((await bytes.take(1)).length > 0) throw damaged(end, 'something follows its end');
      return { entries: at.entries, bytes: end };
    }
    at = { ...at, offset: end, entries: at.entries + entries, blocks: at.blocks + 1, digest };
    if (end <= applied) continue;
    await commitBlock(raw, { body, entries, offset }, at, durability);
    onProgress?.({ entries: at.entries, bytes: end });
  }
}

/** A verified block. */
interface Block {
  readonly body: Uint8Array;
  readonly entries: number;
  readonly offset: number;
}

/** Applies a block, according to the derivations that the store has when it is applied. */
async function commitBlock(
  raw: RawStore,
  block: Block,
  record: ImportRecord,
  durability: ImportOptions['durability'],
): Promise<void> {
  for (;;) {
    const stated = await raw.get(DERIVED_KEY, 0);
    try {
      await raw.commit(batchOf(block, record, stated), durability);
      return;
    } catch (error) {
      // Somebody has changed the derivations in between.
      if (!hasCode(error, 'VARVE_CONFLICT')) throw error;
    }
  }
}

/**
 * A block and its record as one batch. The derived keys in the store are not changed here. They have to be derived again from the source
 * keys in the block, and the marks of these source keys record that.
 */
function batchOf({ body, entries, offset }: Block, record: ImportRecord, stated: RawEntry | undefined): Uint8Array {
  const batch = new BatchWriter(new ByteSink(BATCH_BYTES));
  const derivations = readDerivations(stated?.value);
  const marked = new Set<Derivation>();
  // The batch depends on this entry: it is written again as it is, on the condition that it was not written since.
  if (stated === undefined) batch.delete(rawBytes, DERIVED_KEY, { ifSequence: null });
  else set(batch, DERIVED_KEY, stated.value, { ifSequence: stated.sequence });
  readEntries(body, entries, offset, (key, value, expires) => {
    if (key.length === 0 || key.length > KEY_BYTES_MAX || key[0] === RESERVED) throw damaged(offset, 'a key');
    // Checks the key: with an invalid key in the store, every later scan would fail.
    decodeKey(key);
    if (isDerived(derivations, key)) return;
    const derivation = derivations.find(({ source }) => hasPrefix(key, source));
    if (derivation !== undefined) marked.add(derivation);
    set(batch, key, value, { expiresAt: expires && getU64(new DataView(expires.buffer, expires.byteOffset), 0) });
  });
  for (const { marks } of marked) for (const mark of marks) set(batch, mark, MARK);
  set(batch, IMPORT_KEY, encodeRecord(record));
  return batch.view();
}

function set(batch: BatchWriter, key: Uint8Array, value: Uint8Array, options?: SetItemOptions): void {
  batch.set(rawBytes, key, rawBytes, value, options);
}

async function isEmpty(raw: RawStore): Promise<boolean> {
  const scan = raw.scan({ lower: undefined, upper: undefined }, 0);
  try {
    for (let batch = await scan.take(); batch !== undefined; batch = await scan.take()) {
      if (batch.count > 0) return false;
    }
    return true;
  } finally {
    scan.close();
  }
}

async function checkVersion(raw: RawStore, version: number): Promise<void> {
  const stored = readVersion((await raw.get(VERSION_KEY, 0))?.value);
  if (stored === 0 || stored === version) return;
  throw new VarveError(
    'VARVE_VERSION',
    `The store has version ${stored}, and the export ${version}. Import into a store that was opened without a version, and open that with one: then it is upgraded.`,
  );
}

function encrypted(): VarveError {
  return new VarveError(
    'VARVE_KEY',
    'The export is encrypted. Import it with its key: import(source, { encryption: { key } }).',
  );
}

function notEmpty(): VarveError {
  return new VarveError(
    'VARVE_EXISTS',
    'The store is not empty. Import into a new store, clear() this one, or pass merge: true to write over what it has. An import that was interrupted continues only if nothing was written since.',
  );
}

function truncated(offset: number): VarveError {
  return new VarveError(
    'VARVE_CORRUPT',
    `The export ends at byte ${offset}, before its end. The part before is intact. Get the whole export and import it again: that continues after the last whole block.`,
  );
}
