/**
 * Answers reads in the tab: from what was read before, as long as the tab has a lease on it.
 *
 * Invariants:
 * - An answer from here is the one that the store would give now.
 * - A read is answered from here or by the store, never by both: so its values have one read point.
 * - Entries that expire are not kept: only the clock of the store decides when they are gone.
 * - Bytes are kept, and decoded for each answer: so a caller that changes a value does not change the cache.
 * - An answer is kept while it is handled, before the next message is: so nothing is kept that was revoked meanwhile.
 * - Reads behind a request for the sequence of the store are answered by the store until it is answered. The request may wait, for a Blob
 *   before it or for a busy tab. An answer from here would be older than the sequence, and its reader would miss the changes in between.
 */

import type { Client, ReadKeeper } from '../client/client.ts';
import { type KeptOperation, keyList, type ScanOpened } from '../client/operations.ts';
import { textOfBytes } from '../codec/byte-text.ts';
import type { Formats } from '../codec/formats.ts';
import { Footprint, type PlainFootprint, type TextRange } from '../protocol/footprint.ts';
import { BatchKind, ENTRY_HEAD_BYTES, Op, READ_POINT_BYTES, Status } from '../protocol/frame.ts';
import { scanRange, textRange, writesOfBatch } from '../protocol/frame-footprint.ts';
import type { FrameReader } from '../protocol/frame-reader.ts';
import { type FrameWriter, type Operation, rawBytes } from '../protocol/frame-writer.ts';
import { flagsOf, readScanBatch, type ScanBatch, type ScanRequest } from '../protocol/scan.ts';
import { afterTurn } from '../runtime/turn.ts';
import { type Kept, KeptReads, type Ticket } from './kept-reads.ts';

/** How long a caller that awaits one read after another may prolong a turn, in milliseconds. */
const TURN_MS = 4;
const EVERYTHING: TextRange = ['', undefined];
const NOTHING = new Uint8Array(0);
const rawKeys = keyList(rawBytes);
/** The writes that are no batch, as a batch would name them. */
const KINDS: ReadonlyMap<number, number> = new Map([
  [Op.set, BatchKind.set],
  [Op.delete, BatchKind.delete],
  [Op.deleteRange, BatchKind.deleteRange],
]);

/** The reads of one client, of its store and the views of it. */
export class ReadCache implements ReadKeeper {
  readonly #client: Client;
  /** Whether no other client can ever write. */
  readonly #isAlone: boolean;
  readonly #kept: KeptReads;
  readonly #send: Client['submit'];
  #isRenewing = false;
  /** How many requests for the sequence of the store are not answered. */
  #places = 0;
  /** When the first read of this turn was answered from here. */
  #turnAt: number | undefined;

  /** Makes a client answer reads from what is kept here, in at most `bytesMax` bytes. */
  constructor(client: Client, bytesMax: number) {
    this.#client = client;
    this.#isAlone = client.id === 0;
    this.#kept = new KeptReads(bytesMax, () => performance.now(), this.#isAlone);
    this.#send = client.submit.bind(client);
    client.submit = this.#submit;
    client.keeper = this;
  }

  /** The value of a key, if it is here. */
  peek<K, V>({ keys, values }: Formats<K, V>, key: K): V | undefined {
    const kept = this.#find(textOfBytes(keys.encode(key)));
    return kept === undefined ? undefined : decoded(kept, values);
  }

  batch(request: ScanRequest): ScanBatch | undefined {
    if (request.snapshot !== 0) return undefined;
    const kept = this.#answer(scanId(request));
    if (kept?.bytes === undefined) return undefined;
    return readScanBatch(kept.bytes.slice(), 0, kept.bytes.length, request.keys, request.values);
  }

  called(code: number, writer: FrameWriter): ((answer?: FrameReader) => void) | undefined {
    // A store that is filled is seldom read meanwhile.
    if (this.#kept.isIdle) return undefined;
    const canKeep = !writer.lastIsUnread;
    if (code === Op.batch) return this.#called(writesOfBatch(writer.last.value), canKeep);
    const kind = KINDS.get(code);
    return kind === undefined ? undefined : this.#called([{ kind, ...writer.last, isExpiring: false }], canKeep);
  }

  granted(sentAt: number, isNew: boolean): void {
    this.#kept.granted(sentAt, isNew);
  }

  revoked(footprint: PlainFootprint): void {
    this.#kept.revoked(Footprint.of(footprint));
  }

  lost(): void {
    this.#kept.lost();
  }

  /** Takes the place of the client's `submit`. */
  readonly #submit: Client['submit'] = (operation, given, value, level, signal) => {
    const { formats } = operation as Partial<KeptOperation<unknown, unknown, unknown, unknown, unknown>>;
    if (level !== 0 || signal?.aborted) return this.#send(operation, given, value, level, signal);
    try {
      let answer: Promise<unknown> | undefined;
      if (formats !== undefined) {
        this.#client.ensureOpen();
        // A key is read here and then sent on, as bytes.
        if (operation.code === Op.getMany) answer = this.#getMany(formats, value as readonly unknown[], signal);
        else if (operation.code === Op.get) answer = this.#get(formats, given, signal);
        else answer = this.#has(formats, given, signal);
      } else if (operation.code === Op.scanOpen) {
        const request = value as unknown as ScanRequest;
        if (request.snapshot === 0 && request.expiries !== true) {
          const open = operation as unknown as Operation<number, ScanRequest, ScanOpened>;
          answer = this.#scan(open, given as unknown as number, request, signal);
        }
      } else if (operation.code === Op.changes && value === undefined) {
        answer = this.#send(operation, given, value, level, signal);
        this.#placed(answer);
      }
      return (answer ?? this.#send(operation, given, value, level, signal)) as Promise<never>;
    } catch (error) {
      return Promise.reject(error);
    }
  };

  /** Until it is answered, the store answers the reads behind it. */
  #placed(sequence: Promise<unknown>): void {
    const ended = (): void => {
      this.#places--;
    };
    this.#places++;
    sequence.then(ended, ended);
  }

  #get({ keys, values }: Formats<unknown, unknown>, key: unknown, signal: AbortSignal | undefined): Promise<unknown> {
    const bytes = keys.encode(key);
    const id = textOfBytes(bytes);
    const kept = this.#answer(id);
    if (kept !== undefined) return Promise.resolve(decoded(kept, values));
    const ticket = this.#kept.read(id);
    const read = (answer: FrameReader): unknown => {
      const start = answer.start + ENTRY_HEAD_BYTES;
      const isThere = answer.status !== Status.missing;
      if (!isThere) this.#keep(answer, ticket, { bytes: undefined });
      else if (answer.entryHead().expiresAt === undefined)
        this.#keep(answer, ticket, { bytes: answer.bytes.slice(start, answer.end) });
      return isThere ? values.read(answer.bytes, start, answer.end) : undefined;
    };
    return this.#read([ticket], { code: Op.getEntry, key: rawBytes, value: undefined, read }, bytes, undefined, signal);
  }

  /** Only the absence of a key is kept: of its entry, only the existence is known. */
  #has({ keys }: Formats<unknown, unknown>, key: unknown, signal: AbortSignal | undefined): Promise<boolean> {
    const bytes = keys.encode(key);
    const id = textOfBytes(bytes);
    const kept = this.#answer(id);
    if (kept !== undefined) return Promise.resolve(kept.bytes !== undefined);
    const ticket = this.#kept.read(id);
    const read = (answer: FrameReader): boolean => {
      const isThere = answer.status !== Status.missing;
      if (!isThere) this.#keep(answer, ticket, { bytes: undefined });
      return isThere;
    };
    return this.#read([ticket], { code: Op.has, key: rawBytes, value: undefined, read }, bytes, undefined, signal);
  }

  #getMany(
    { keys: format, values }: Formats<unknown, unknown>,
    keys: readonly unknown[],
    signal: AbortSignal | undefined,
  ): Promise<unknown[]> {
    const encoded = keys.map((key) => format.encode(key));
    const ids = encoded.map(textOfBytes);
    const kept = ids.map((id) => this.#answer(id));
    if (!kept.includes(undefined)) return Promise.resolve((kept as Kept[]).map((one) => decoded(one, values)));
    const tickets = ids.map((id) => this.#kept.read(id));
    const read = (answer: FrameReader): unknown[] => {
      const found = answer.many((bytes, start, end) => bytes.subarray(start, end));
      return found.map((bytes, i) => {
        if (!answer.expires) this.#keep(answer, tickets[i] as Ticket, { bytes: bytes?.slice() });
        return bytes && values.read(bytes, 0, bytes.length);
      });
    };
    return this.#read(tickets, { code: Op.getMany, key: undefined, value: rawKeys, read }, undefined, encoded, signal);
  }

  #scan(
    open: Operation<number, ScanRequest, ScanOpened>,
    cursor: number,
    request: ScanRequest,
    signal: AbortSignal | undefined,
  ): Promise<ScanOpened> {
    const { lower, upper } = request.range;
    const range = scanRange(flagsOf(request), lower?.key ?? NOTHING, upper?.key ?? NOTHING);
    const ticket = this.#kept.read(scanId(request), range);
    const read = (answer: FrameReader): ScanOpened => {
      const opened = open.read(answer);
      const start = answer.start + READ_POINT_BYTES;
      if (opened.cursor === 0 && !answer.expires) {
        this.#keep(answer, ticket, { bytes: answer.bytes.slice(start, answer.end), range });
      }
      return opened;
    };
    return this.#read([ticket], { ...open, read }, cursor, request, signal);
  }

  /** Sends a read that is not here. */
  #read<A, B, T>(
    tickets: readonly Ticket[],
    operation: Operation<A, B, T>,
    key: A,
    value: B,
    signal: AbortSignal | undefined,
  ): Promise<T> {
    const leave = (): void => {
      for (const ticket of tickets) this.#kept.leave(ticket);
    };
    const answer = this.#send(operation, key, value, 0, signal);
    answer.then(leave, leave);
    return answer;
  }

  #keep(answer: FrameReader, ticket: Ticket, kept: Kept): void {
    if (this.#isAlone || answer.isGranted) this.#kept.keep(ticket, kept);
  }

  /** As `#find`, for a caller that may await one read after another: then timers and messages need a turn in between. */
  #answer(id: string): Kept | undefined {
    const kept = this.#places > 0 ? undefined : this.#find(id);
    if (kept === undefined) return undefined;
    const { usedAt } = this.#kept;
    if (this.#turnAt === undefined) {
      this.#turnAt = usedAt;
      afterTurn(() => {
        this.#turnAt = undefined;
      });
    }
    // The engine answers in another turn.
    return usedAt - this.#turnAt > TURN_MS ? undefined : kept;
  }

  /** The answer that is kept, if the lease runs. Each look at it renews a lease that is half over. */
  #find(id: string): Kept | undefined {
    const kept = this.#kept.get(id);
    if (kept !== undefined && this.#kept.isOld && !this.#isRenewing) this.#renew();
    return kept;
  }

  #renew(): void {
    const sentAt = performance.now();
    const ended = (isGranted: unknown): void => {
      this.#isRenewing = false;
      if (isGranted === true) this.#kept.granted(sentAt, false);
    };
    this.#isRenewing = true;
    // Not at once: in a getter or a codec, `ask` threw. The write there was refused, and no lease was renewed any more.
    const ask = (): Promise<unknown> => this.#client.ask({ type: 'call', method: 'renew', args: [] });
    Promise.resolve().then(ask).then(ended, ended);
  }

  /** This client writes these; without a list, too many to look at. */
  #called(writes: ReturnType<typeof writesOfBatch>, canKeep: boolean): ((answer?: FrameReader) => void) | undefined {
    const written: [Ticket, Kept][] = [];
    if (writes === undefined) this.#kept.writeRange(EVERYTHING);
    for (const { kind, key, value, isExpiring } of writes ?? []) {
      if (kind === BatchKind.deleteRange) {
        this.#kept.writeRange(textRange(key, value));
        continue;
      }
      const ticket = this.#kept.write(textOfBytes(key), canKeep && !isExpiring);
      if (ticket !== undefined) written.push([ticket, { bytes: kind === BatchKind.set ? value.slice() : undefined }]);
    }
    if (written.length === 0) return undefined;
    return (answer) => {
      const isCurrent = answer !== undefined && (this.#isAlone || answer.isGranted);
      for (const [ticket, kept] of written) this.#kept.written(ticket, isCurrent ? kept : undefined);
    };
  }
}

function decoded<V>({ bytes }: Kept, values: Formats<never, V>['values']): V | undefined {
  return bytes === undefined ? undefined : values.read(bytes.slice(), 0, bytes.length);
}

/** The name of the answer to a scan. No key begins with this byte. */
function scanId(request: ScanRequest): string {
  const { range, limit } = request;
  const lower = textOfBytes(range.lower?.key ?? NOTHING);
  return `\xff${flagsOf(request)} ${limit} ${lower.length} ${lower}${textOfBytes(range.upper?.key ?? NOTHING)}`;
}
