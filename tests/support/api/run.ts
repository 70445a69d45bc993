// Runs a history on a store, and compares everything with the models.

import type { Key, Store } from 'varve';
import { flood } from '../flood.ts';
import { runAbandoned } from './abandoned.ts';
import { Copy, type Follower, Watched } from './followers.ts';
import {
  type Abandoned,
  FREQUENT_KEYS,
  type History,
  type NoteCall,
  type OpenSpec,
  type Racing,
  type ScanSpec,
  type Single,
  SLOTS,
  type Step,
  type Storm,
  TICK_MS,
} from './history.ts';
import { KEYS, MARKER } from './keys.ts';
import { Model, type Moment, tagsOf } from './model.ts';
import {
  applyNote,
  callNote,
  indexFault,
  type Notes,
  type NotesState,
  notesFound,
  notesOf,
  notesText,
} from './notes.ts';
import { type Answered, type Apply, isExplained } from './orders.ts';
import { applyRacing, callRacing, type RacingState, racingFound, racingText } from './racing.ts';
import {
  type AnyIterator,
  type AnySnapshot,
  type AnyStore,
  callSingle,
  conditionedKeys,
  open,
  taken,
} from './singles.ts';
import { runStorm } from './storm.ts';

/** The place where histories run. */
export interface Place {
  /** Opens a store; `more` are options that are not always given. A store that is opened twice has two clients, in places with clients. */
  open(name: string, options: OpenSpec, more?: object): Promise<AnyStore>;
  /** Removes a store and the files of `litter`; throws if a part of it stays, or if something else is gone. */
  remove(name: string): Promise<unknown>;
  /** The location of the module that checks, unless it lies beside the package. */
  readonly tools?: URL;
  /** Lets this many milliseconds pass; without it no time passes. */
  advance?(ms: number): void;
  /** How many bytes a client has sent to its own worker. */
  sent?(db: AnyStore): number;
  /** Ends the worker of a client. The leader is the worker of one of the clients. */
  endWorker?(db: AnyStore): void;
  /** Ends all clients of all stores, as a crash would: none of their requests is done or answered any more. */
  kill?(): void;
  /** Puts files and folders beside a store and into its folder; throws if they are taken for stores. */
  litter?(name: string): Promise<void>;
  /** Takes away the folder of an open store; returns a function that puts it back. */
  moveAway?(name: string): () => void;
}

/** A call that takes this long is reported as waiting for ever. */
const DEADLINE_MS = 60_000;
const PAUSE_MS = 2;

/** Runs a history, in stores of this name. Throws if something is wrong. */
export async function runHistory(place: Place, name: string, history: History): Promise<void> {
  const run = new Run(place, name);
  await run.begin(history.options);
  try {
    for (const [i, step] of history.steps.entries()) {
      await run.step(step).catch((error) => {
        throw new Error(`Step ${i} (${step.type}): ${(error as Error).message}`, { cause: error });
      });
    }
    await run.end(history.options);
  } finally {
    await run.clear();
  }
}

/** A call of the collection, and its answer. */
type Noted = Answered<NoteCall>;

interface OpenScan {
  readonly iterator: AnyIterator;
  readonly scan: ScanSpec;
  /** The items that it has yet to return. */
  readonly left: string[];
  /** Ends when the last step that was called has ended. */
  stepped: Promise<unknown>;
}

interface KeptExport {
  readonly bytes: Uint8Array;
  readonly moment: Moment;
  readonly racing: RacingState | undefined;
  readonly notes: NotesState | undefined;
}

/** Whether the answer to a call promises that all writes before it outlive a crash. A read may have seen writes of the memory level. */
function isPromise(single: Single): boolean {
  if (single.op === 'write') return single.durability !== 'memory';
  return single.op === 'batch' || single.op === 'setMany' || single.op === 'flush';
}

/** One running history. */
class Run {
  readonly #place: Place;
  readonly #name: string;
  readonly #model = new Model();
  readonly #followers: Follower[] = [];
  readonly #scans: (OpenScan | undefined)[] = new Array(SLOTS);
  readonly #snapshots: ({ readonly snapshot: AnySnapshot; readonly moment: Moment } | undefined)[] = new Array(SLOTS);
  readonly #exports: (KeptExport | undefined)[] = new Array(SLOTS);
  #racing: RacingState = { ticks: 0, lists: new Map() };
  #documents: NotesState = new Map();
  #db!: AnyStore;
  #notes: Notes | undefined;
  /** A second client of the store. */
  #second: Store<Key, unknown> | undefined;
  #isRemoved = false;
  #start = 0;
  #tag = 0;

  constructor(place: Place, name: string) {
    this.#place = place;
    this.#name = name;
  }

  async begin(options: OpenSpec): Promise<void> {
    this.#start = Date.now();
    await this.#open(options);
  }

  async step(step: Step): Promise<void> {
    switch (step.type) {
      case 'round':
        return this.#round(step);
      case 'reopen':
        return this.#reopen(step.singles, step.options);
      case 'tick':
        return this.#tick(step.ticks);
      case 'copy':
        return this.#copy();
      case 'export':
        return this.#export(step.slot, step.isWhole);
      case 'merge':
        return this.#merge(step.slot);
      case 'follow':
        if (isAsync(this.#db)) this.#followers.push(await Copy.of(this.#db, step.range, step));
        return;
      case 'live':
        if (isAsync(this.#db)) this.#followers.push(new Watched(this.#db, step.scan, step));
        return;
      case 'requery': {
        const follower = this.#followers[step.index];
        if (follower instanceof Watched) follower.requery(step.scan);
        return;
      }
      case 'unfollow':
        for (const follower of this.#followers.splice(step.index, 1)) follower.stop();
        return;
      case 'catchUp':
        return this.#catchUp();
      case 'storm':
        return this.#storm(step);
      case 'flood':
        return this.#within('a flood', flood(this.#db, step));
      case 'abandon':
        return this.#abandon(step);
      case 'tab':
        if (this.#second === undefined) this.#second = (await this.#opened(step.options)) as Store<Key, unknown>;
        return;
      case 'lead':
        return this.#lead(step);
      case 'kill':
        return this.#kill(step);
      case 'litter':
        return this.#place.litter?.(this.#name);
      case 'move':
        return this.#move(step.options);
    }
  }

  /** Compares the whole content, checks, opens the store once more and compares again. */
  async end(options: OpenSpec): Promise<void> {
    await this.#catchUp();
    await this.#verify();
    await this.#reopen([], options);
    await this.#verify();
    await this.#catchUp();
    equal('a check', await this.#within('a check', this.#single({ op: 'check' }, 0)), '[]');
    await this.#closeAll();
    await this.#place.remove(this.#name);
    this.#isRemoved = true;
  }

  /** Closes and removes everything. */
  async clear(): Promise<void> {
    for (const follower of this.#followers) follower.stop();
    if (this.#isRemoved) return;
    await this.#closeAll().catch(() => undefined);
    await this.#place.remove(this.#name).catch(() => undefined);
  }

  /** Opens the store; drops everything that was open of it. */
  async #open(options: OpenSpec): Promise<void> {
    this.#scans.fill(undefined);
    this.#snapshots.fill(undefined);
    this.#second = undefined;
    this.#db = await this.#opened(options);
    this.#notes = isAsync(this.#db) ? notesOf(this.#db) : undefined;
    for (const follower of this.#followers) await follower.reopened(this.#db as Store<Key, unknown>);
  }

  #opened(options: OpenSpec): Promise<AnyStore> {
    return this.#within('opening', this.#place.open(this.#name, options));
  }

  async #closeAll(): Promise<void> {
    await this.#within('closing', allDone([this.#second?.close(), this.#db?.close()]));
  }

  /** The clients of the store, first the client of single operations. */
  get #clients(): AnyStore[] {
    return this.#second === undefined ? [this.#db] : [this.#db, this.#second];
  }

  /** The client that takes the call of this number. */
  #client(call: number): AnyStore {
    return this.#clients[call % this.#clients.length] as AnyStore;
  }

  async #round({ singles, racing, notes, isSpread }: Step & { type: 'round' }): Promise<void> {
    const turn = async (): Promise<void> => {
      if (isSpread) await pause(0);
    };
    const sequences = await this.#sequences(singles);
    this.#model.beginRound();
    const calls: Promise<void>[] = [];
    const called = (call: Promise<void>): void => {
      calls.push(call);
      // The code that waits for all of them gets the error.
      call.catch(() => undefined);
    };
    const raced: { call: { call: Racing; tag: number }; answer: string }[] = [];
    const noted: Noted[] = [];
    const count = Math.max(singles.length, racing.length, notes.length);
    for (let i = 0; i < count; i++) {
      const [single, race, note] = [singles[i], racing[i], notes[i]];
      if (single !== undefined) called(this.#call(single, sequences));
      if (race !== undefined) {
        const call = { call: race, tag: this.#tag++ };
        const answered = callRacing(this.#client(i), call, () => pause(0));
        called(answered.then((answer) => void raced.push({ call, answer })));
      }
      if (note !== undefined) called(this.#callNote(note, i, noted));
      await turn();
    }
    await this.#within('a round', allDone(calls));
    if (raced.length > 0) await this.#judgeRacing(raced);
    if (noted.length > 0) await this.#judgeNotes(noted);
    // So the calls of the next round find these in the cache.
    for (let key = 0; key < FREQUENT_KEYS; key++) await this.#call({ op: 'get', key }, sequences);
  }

  /** Makes the call of this number, and notes its answer, unless it was lost with the leader. */
  async #callNote(call: NoteCall, number: number, noted: Noted[], mayDie = false): Promise<void> {
    if (this.#notes === undefined) return;
    const notes = number % 2 === 1 && this.#second !== undefined ? notesOf(this.#second) : this.#notes;
    const answer = await callNote(notes, call, mayDie);
    if (answer !== undefined) noted.push({ call, answer });
  }

  async #judgeRacing(raced: { call: { call: Racing; tag: number }; answer: string }[]): Promise<void> {
    const found = await racingFound(this.#db, this.#model.now, this.#start);
    judge('racing calls', raced, { begin: this.#racing, end: found, apply: applyRacing, text: racingText });
    this.#racing = found;
  }

  async #judgeNotes(noted: Noted[]): Promise<void> {
    const found = await this.#foundNotes();
    judge('calls of the collection', noted, { begin: this.#documents, end: found, apply: applyNote, text: notesText });
    this.#documents = found;
  }

  /** The documents; their indexes must be right. */
  async #foundNotes(): Promise<NotesState> {
    if (this.#notes === undefined) return new Map();
    const found = await notesFound(this.#notes);
    const fault = await indexFault(this.#db as Store<Key, unknown>, this.#notes, found);
    if (fault !== undefined) throw new Error(fault);
    return found;
  }

  /**
   * Calls an operation whose answer is known. With `mayDie` a refusal may be lost with the leader, and so may the read point of a read:
   * the caller gets an error that says to call again.
   */
  async #call(single: Single, sequences: ReadonlyMap<number, number | null>, mayDie = false): Promise<void> {
    switch (single.op) {
      case 'openScan': {
        const { slot, scan } = single;
        void this.#closeScan(slot);
        const left = this.#model.scan(scan);
        this.#scans[slot] = { iterator: open(this.#db, scan), scan, left, stepped: Promise.resolve() };
        return;
      }
      case 'advance': {
        const opened = this.#scans[single.slot];
        if (opened === undefined) return;
        const expected = opened.left.splice(0, single.count);
        if (expected.length < single.count) expected.push('end');
        // Steps run one after another, and each gets the items that are left for it.
        const step = opened.stepped.then(() => taken(opened.iterator, opened.scan, single.count));
        opened.stepped = step.catch(() => undefined);
        return equal('an open scan', (await step).join('; '), expected.join('; '));
      }
      case 'closeScan':
        return this.#closeScan(single.slot);
      case 'snapshot': {
        const moment = this.#model.moment();
        const snapshot = this.#db.snapshot();
        const former = this.#snapshots[single.slot];
        // First, so that a call of this round never reads one that is closed (seed 363737595 of `varve/synchronous`).
        this.#snapshots[single.slot] = { snapshot, moment };
        await former?.snapshot.close();
        return;
      }
      case 'readSnapshot': {
        const takenBefore = this.#snapshots[single.slot];
        if (takenBefore === undefined) return;
        const { snapshot, moment } = takenBefore;
        const [texts, count, value] = await Promise.all([
          taken(open(snapshot, single.scan), single.scan, Number.POSITIVE_INFINITY),
          snapshot.count({ prefix: ['k'] }),
          callSingle(snapshot as unknown as AnyStore, { op: 'get', key: single.key }, 0, this.#surroundings(sequences)),
        ]);
        equal('a scan of a snapshot', texts.join('; '), moment.scan(single.scan).join('; '));
        equal('a count of a snapshot', String(count), String(moment.count({ prefix: 0 })));
        return equal('a get of a snapshot', value, moment.text(single.key));
      }
      case 'closeSnapshot': {
        const closing = this.#snapshots[single.slot];
        this.#snapshots[single.slot] = undefined;
        await closing?.snapshot.close();
        return;
      }
      default: {
        const tag = this.#tag;
        this.#tag += tagsOf(single);
        const expected = this.#model.answer(single, tag);
        const answer = await this.#single(single, tag, sequences).catch((error) => {
          if (mayDie && error?.code === 'VARVE_RETRY') return error.code as string;
          throw new Error(`${JSON.stringify(single)}: ${error}`, { cause: error });
        });
        const isLost = mayDie && answer === 'VARVE_RETRY' && (expected === 'VARVE_CONFLICT' || isRead(single));
        return isLost ? undefined : equal(single.op, answer, expected);
      }
    }
  }

  /** Closes a scan early, behind the steps that were called. */
  async #closeScan(slot: number): Promise<void> {
    const opened = this.#scans[slot];
    this.#scans[slot] = undefined;
    await opened?.stepped;
    await opened?.iterator.return?.();
  }

  #single(single: Single, tag: number, sequences: ReadonlyMap<number, number | null> = new Map()): Promise<string> {
    return callSingle(this.#db, single, tag, this.#surroundings(sequences));
  }

  #surroundings(sequences: ReadonlyMap<number, number | null>) {
    const db = this.#db;
    return { sequences, start: this.#start, tools: this.#place.tools, sent: () => this.#place.sent?.(db) };
  }

  async #sequences(singles: readonly Single[]): Promise<Map<number, number | null>> {
    const sequences = new Map<number, number | null>();
    for (const key of conditionedKeys(singles)) {
      sequences.set(key, (await this.#db.getEntry(KEYS[key] as Key))?.sequence ?? null);
    }
    return sequences;
  }

  async #reopen(singles: readonly Single[], options: OpenSpec): Promise<void> {
    const sequences = await this.#sequences(singles);
    this.#model.beginRound();
    const calls = singles.map((single) => this.#call(single, sequences));
    // A synchronous store has nothing under way between turns.
    if (!isAsync(this.#db)) await allDone(calls);
    await this.#within('closing', allDone([...calls, this.#closeAll()]));
    const misspelt = this.#place.open(this.#name, options, { durabilty: 'strict' });
    equal('opening with an unknown option', await codeOf(misspelt), 'VARVE_INVALID_ARGUMENT');
    await this.#open(options);
  }

  async #storm(storm: Storm): Promise<void> {
    const [before, tag, start] = [this.#racing, this.#tag, this.#start];
    this.#tag += storm.count;
    const clients = this.#clients as Store<Key, unknown>[];
    const running = runStorm(storm, { clients, before, tag, start, turn: () => pause(0) });
    this.#racing = await this.#within('a storm', running);
  }

  async #abandon(abandoned: Abandoned): Promise<void> {
    const db = this.#db as Store<Key, unknown>;
    const isCounted = (await this.#leader()) === db;
    const sent = (): number | undefined => (isCounted ? this.#place.sent?.(db) : undefined);
    await this.#within('what followers cost', runAbandoned(db, abandoned, { sent, turn: () => pause(PAUSE_MS) }));
  }

  /** The leader ends, and another worker leads: every call is still answered, and done once. */
  async #lead({ singles, racing, notes, turns }: Step & { type: 'lead' }): Promise<void> {
    // Open scans and snapshots go on or give the reason; a write of the level `memory` may be lost.
    for (let slot = 0; slot < SLOTS; slot++) {
      await this.#closeScan(slot);
      await this.#call({ op: 'closeSnapshot', slot }, new Map());
    }
    await this.#db.flush();
    const leader = await this.#leader();
    const sequences = await this.#sequences(singles);
    this.#model.beginRound();
    const raced: { call: { call: Racing; tag: number }; answer: string }[] = [];
    const calls = singles.map((single) => this.#call(single, sequences, true));
    for (const [i, race] of racing.entries()) {
      const call = { call: race, tag: this.#tag++ };
      const answered = callRacing(this.#client(i), call, () => pause(0));
      calls.push(answered.then((answer) => void raced.push({ call, answer })));
    }
    const noted: Noted[] = [];
    for (const [i, note] of notes.entries()) calls.push(this.#callNote(note, i, noted, true));
    for (const call of calls) call.catch(() => undefined);
    for (let turn = 0; turn < turns; turn++) await pause(0);
    this.#place.endWorker?.(leader);
    await this.#within('a round with a leader that dies', allDone(calls));
    if (raced.length > 0) await this.#judgeRacing(raced);
    if (noted.length > 0) await this.#judgeNotes(noted);
    await this.#verify();
  }

  /** The client whose worker leads. */
  async #leader(): Promise<AnyStore> {
    for (const db of this.#clients) if ((await db.stats()).sharing?.leads) return db;
    return this.#db;
  }

  /** All clients end: a number of the first calls under way are done, including all acknowledged ones, and nothing else. */
  async #kill({ singles, turns, options }: Step & { type: 'kill' }): Promise<void> {
    await this.#db.flush();
    const sequences = await this.#sequences(singles);
    this.#model.beginRound();
    const moments = [this.#model.moment()];
    let [acknowledged, isDead] = [0, false];
    let fault: unknown;
    for (const [i, single] of singles.entries()) {
      const tag = this.#tag;
      this.#tag += tagsOf(single);
      const expected = this.#model.answer(single, tag);
      moments.push(this.#model.moment());
      this.#single(single, tag, sequences).then(
        (answer) => {
          if (isDead) return;
          if (answer !== expected) fault ??= new Error(`${single.op}: ${answer}\ninstead of ${expected}`);
          // A conflict does not show which write it met: a write of the level `memory` may be lost.
          if (isPromise(single) && answer !== 'VARVE_CONFLICT') acknowledged = Math.max(acknowledged, i + 1);
        },
        (error) => {
          if (!isDead) fault ??= error;
        },
      );
    }
    for (let turn = 0; turn < turns; turn++) await pause(0);
    isDead = true;
    this.#place.kill?.();
    if (fault !== undefined) throw fault;
    await this.#open(options);
    const found = (await Promise.all([...KEYS.keys()].map((key) => this.#single({ op: 'getEntry', key }, 0)))).join(
      '; ',
    );
    const textOfMoment = (moment: Moment): string => [...KEYS.keys()].map((key) => moment.entryText(key)).join('; ');
    const left = moments.findLastIndex((moment) => textOfMoment(moment) === found);
    if (left < acknowledged) {
      throw new Error(
        `After a crash with ${acknowledged} of ${singles.length} calls acknowledged ${left} are there: ${found}`,
      );
    }
    this.#model.backTo(moments[left] as Moment);
    await this.#verify();
  }

  /** An open store whose folder is taken away accepts nothing more, and does not touch the store that replaces it. */
  async #move(options: OpenSpec): Promise<void> {
    await this.#db.flush();
    for (const follower of this.#followers) follower.stop();
    const back = this.#place.moveAway?.(this.#name);
    if (back === undefined) return;
    const strict = { durability: 'strict' } as const;
    try {
      const other = await this.#opened(options);
      try {
        equal('what another store in the place has', String(await other.count()), '0');
        await other.set(['other'], 1, strict);
        const lost = new Promise((resolve) => resolve(this.#db.set(['lost'], 1, strict)));
        equal('a write whose folder is gone', await codeOf(lost), 'VARVE_POISONED');
        await this.#db.close().catch(() => undefined);
        equal('what the other store has', String(await other.count()), '1');
      } finally {
        await other.close();
      }
      await this.#place.remove(this.#name);
    } finally {
      back();
    }
    await this.#open(options);
    await this.#db.delete(['lost'], strict);
    await this.#verify();
  }

  #tick(ticks: number): void {
    if (this.#place.advance === undefined) return;
    this.#place.advance(ticks * TICK_MS);
    this.#model.tick(ticks);
    this.#racing = { ...this.#racing, ticks: this.#model.now };
  }

  /** Another store, made from an export of this one, must be equal. */
  async #copy(): Promise<void> {
    const name = `${this.#name} copy`;
    const options = { memoryBytes: 2 ** 20, durability: 'relaxed', cache: false } as const;
    const other = await this.#within('opening a copy', this.#place.open(name, options));
    try {
      await this.#within('copying', other.import(this.#db.export()));
      const mine = this.#db;
      this.#db = other;
      try {
        await this.#verify();
      } finally {
        this.#db = mine;
      }
    } finally {
      await this.#within('closing a copy', other.close());
      await this.#place.remove(name);
    }
  }

  async #export(slot: number, isWhole: boolean): Promise<void> {
    const moment = this.#model.moment();
    const stream = this.#db.export(isWhole ? {} : { prefix: ['k'] });
    const bytes = new Uint8Array(await this.#within('an export', new Response(stream as BodyInit).arrayBuffer()));
    const [racing, notes] = isWhole ? [this.#racing, this.#documents] : [];
    this.#exports[slot] = { bytes, moment, racing, notes };
  }

  async #merge(slot: number): Promise<void> {
    const kept = this.#exports[slot];
    if (kept === undefined || !this.#canMerge(kept)) return;
    const source = async function* (): AsyncGenerator<Uint8Array, void, undefined> {
      for (let at = 0; at < kept.bytes.length; at += 50_000) yield kept.bytes.slice(at, at + 50_000);
    };
    await this.#within('a merge', this.#db.import(source(), { merge: true }));
    this.#model.merge(kept.moment, [...KEYS.keys()]);
    if (kept.racing !== undefined) {
      const then = [...kept.racing.lists].filter(
        ([, { dies }]) => dies === undefined || dies >= (kept.racing?.ticks ?? 0),
      );
      this.#racing = { ...this.#racing, lists: new Map([...this.#racing.lists, ...then]) };
    }
    if (kept.notes !== undefined) this.#documents = new Map([...this.#documents, ...kept.notes]);
    await this.#verify();
  }

  /** Documents with the same title would conflict with each other. */
  #canMerge({ notes }: KeptExport): boolean {
    const titles = [...new Map([...this.#documents, ...(notes ?? [])]).values()].map(({ title }) =>
      title.toLowerCase(),
    );
    return new Set(titles).size === titles.length;
  }

  /** Compares the whole content. */
  async #verify(): Promise<void> {
    const scan: ScanSpec = { brings: 'entries', range: { prefix: 0 }, reverse: false };
    equal('all entries', await this.#single({ op: 'scan', scan }, 0), this.#model.scan(scan).join('; '));
    const racing = await racingFound(this.#db, this.#model.now, this.#start);
    equal('what raced', racingText(racing), racingText(this.#racing));
    if (!isAsync(this.#db)) return;
    const notes = notesOf(this.#db);
    const found = await notesFound(notes);
    equal('the documents', notesText(found), notesText(this.#documents));
    const fault = await indexFault(this.#db, notes, found);
    if (fault !== undefined) throw new Error(fault);
  }

  /** Writes the marker, and waits until all followers have reached the present content. */
  async #catchUp(): Promise<void> {
    if (this.#followers.length === 0) return;
    const key = KEYS.indexOf(MARKER);
    await this.#call({ op: 'write', write: { op: 'set', key, value: { kind: 'number', length: 0 } } }, new Map());
    const end = performance.now() + DEADLINE_MS;
    for (const follower of this.#followers) {
      for (let fault = follower.fault(this.#model); fault !== undefined; fault = follower.fault(this.#model)) {
        if (follower.failure !== undefined) throw new Error(follower.failure);
        if (performance.now() > end) throw new Error(`After ${DEADLINE_MS} ms of quiet ${fault}`);
        await pause(PAUSE_MS);
      }
    }
  }

  /** The outcome of a promise; an error when it takes too long. */
  async #within<T>(what: string, promise: Promise<T>): Promise<T> {
    let timer: ReturnType<typeof setTimeout> | undefined;
    const late = new Promise<never>((_, reject) => {
      timer = setTimeout(() => reject(new Error(`After ${DEADLINE_MS} ms there is no end of ${what}.`)), DEADLINE_MS);
    });
    try {
      return await Promise.race([promise, late]);
    } finally {
      clearTimeout(timer);
    }
  }
}

interface Judged<S, C> {
  readonly begin: S;
  readonly end: S;
  readonly apply: Apply<S, C>;
  readonly text: (state: S) => string;
}

function judge<S, C>(
  what: string,
  calls: readonly { readonly call: C; readonly answer: string }[],
  { begin, end, apply, text }: Judged<S, C>,
): void {
  const expected = text(end);
  if (isExplained(begin, calls, apply, (state) => text(state) === expected)) return;
  const lines = calls.map(({ call, answer }) => `${JSON.stringify(call)} -> ${answer}`).join('\n  ');
  throw new Error(`No order explains the ${what}:\n  ${text(begin)}\n  ${lines}\n  ${expected}`);
}

/** Waits for all, even if one fails. */
async function allDone(promises: readonly unknown[]): Promise<void> {
  const failed = (await Promise.allSettled(promises)).find(({ status }) => status === 'rejected');
  if (failed !== undefined) throw (failed as PromiseRejectedResult).reason;
}

function isRead({ op }: Single): boolean {
  return op === 'get' || op === 'has' || op === 'getEntry' || op === 'getMany' || op === 'hasMany';
}

/** The code of a call's refusal. */
function codeOf(call: Promise<unknown>): Promise<string> {
  return call.then(
    () => 'done',
    (error) => String(error?.code ?? error),
  );
}

function equal(what: string, found: string, expected: string): void {
  if (found !== expected) throw new Error(`${what}: ${found}\ninstead of ${expected}`);
}

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}

function isAsync(db: AnyStore): db is Store<Key, unknown> {
  return 'changes' in db;
}
