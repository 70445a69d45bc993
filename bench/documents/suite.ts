/**
 * The suite `documents`: inserting, reading, updating and finding documents by secondary indexes, from the page.
 *
 * Invariant: rounds of the engines are interleaved, each beginning in turn. Every read is compared with what was written, and at the end the whole
 * store is walked by an index and compared; a row whose checks failed says so.
 */

import { GROUP_STEPS, now, timerStepMs } from '../clock.ts';
import { Random } from '../generator.ts';
import { measure, type Round } from '../measure.ts';
import { budgetMs, type Emit, type Plan, ROUNDS } from '../plan.ts';
import { makeRow } from '../rows.ts';
import type { Tally, Task } from '../tasks/task.ts';
import { DOCUMENT_SUITE } from '../workloads.ts';
import { idOf, type Person, personOf, samePerson, TEAM, teamOf } from './document.ts';
import { indexedDbDocuments } from './indexeddb.ts';
import type { DocumentEngine, DocumentStore } from './store.ts';
import { varveDocuments } from './varve.ts';

/** Engines of the suite; they run where the plan has engines of their names. */
const ENGINES: readonly DocumentEngine[] = [varveDocuments, indexedDbDocuments];
const DOCUMENTS = { quick: 1000, full: 10_000 };
const CALLS = { quick: 300, full: 5000 };
const BATCH = 100;
const FOUND = 20;
const STREAMED = 500;
/** Calls that tell how long one takes. */
const REHEARSED = 20;

/** What a row counts. */
export const DOCUMENT_CALLS = ['insert', 'insertMany', 'get', 'update', 'find', 'stream', 'mix'] as const;
/** One of them. */
export type DocumentCall = (typeof DOCUMENT_CALLS)[number];

/** Runs the suite. */
export async function runDocuments(plan: Plan, emit: Emit, signal: AbortSignal): Promise<void> {
  const engines = ENGINES.filter(({ name }) => plan.engines.includes(name));
  if (!plan.accesses.includes('page') || engines.length === 0) return;
  const contenders: Contender[] = [];
  try {
    for (const engine of engines) contenders.push(await Contender.open(engine, plan));
    let done = 0;
    const total = DOCUMENT_CALLS.length * ROUNDS * engines.length;
    for (const call of DOCUMENT_CALLS) {
      for (let round = 0; round < ROUNDS; round++) {
        for (let turn = 0; turn < contenders.length; turn++) {
          signal.throwIfAborted();
          const contender = contenders[(turn + round) % contenders.length] as Contender;
          const text = `documents: ${contender.engine.name}, ${call}, round ${round + 1} of ${ROUNDS}`;
          emit({ type: 'progress', done: done++, total, text });
          await contender.run(call, round, signal);
        }
      }
    }
    for (const contender of contenders) await contender.conclude(emit);
  } finally {
    for (const contender of contenders) await contender.close();
  }
}

/** One engine, its store, and what must be in it. */
class Contender {
  readonly engine: DocumentEngine;
  readonly #plan: Plan;
  readonly #store: DocumentStore;
  readonly #count: number;
  /** Revisions by number; undefined for a document that was deleted. */
  readonly #revisions: (number | undefined)[] = [];
  /** How many documents each team has. */
  readonly #teams = new Map<string, number>();
  readonly #rounds = new Map<DocumentCall, Round[]>();
  readonly #groups = new Map<DocumentCall, number>();

  private constructor(engine: DocumentEngine, plan: Plan, store: DocumentStore) {
    this.engine = engine;
    this.#plan = plan;
    this.#store = store;
    this.#count = plan.quick ? DOCUMENTS.quick : DOCUMENTS.full;
  }

  static async open(engine: DocumentEngine, plan: Plan): Promise<Contender> {
    await engine.remove(nameOf(engine));
    const contender = new Contender(engine, plan, await engine.open(nameOf(engine)));
    for (let from = 0; from < contender.#count; from += BATCH) await contender.#insertMany(BATCH);
    return contender;
  }

  /** Makes the calls of one round. */
  async run(call: DocumentCall, round: number, signal: AbortSignal): Promise<void> {
    const group = this.#groups.get(call) ?? (await this.#groupOf(call));
    this.#groups.set(call, group);
    const calls = this.#plan.count ?? (this.#plan.quick ? CALLS.quick : CALLS.full);
    const task = this.#task(call, calls, round + 1);
    const limits = { group, budget_ms: budgetMs(this.#plan), calls_max: calls, together: false, signal };
    const rounds = this.#rounds.get(call) ?? [];
    rounds.push(await measure(task, limits));
    this.#rounds.set(call, rounds);
  }

  /** Checks the whole store, and reports. */
  async conclude(emit: Emit): Promise<void> {
    const expected = this.#revisions.filter((revision) => revision !== undefined).length;
    let wrong = 0;
    let seen = 0;
    let last = 0;
    await this.#store.stream(new Date(0), (person) => {
      const number = Number(person.id.slice(-8));
      if (!samePerson(person, this.#expected(number)) || person.joined.getTime() < last) wrong++;
      last = person.joined.getTime();
      seen++;
      return true;
    });
    const isSound = wrong === 0 && seen === expected;
    if (!isSound) {
      const text = `documents on ${this.engine.name}: ${wrong} documents are wrong, ${seen} of ${expected} are there.`;
      emit({ type: 'problem', text });
    }
    for (const [call, rounds] of this.#rounds) {
      const { name, role } = this.engine;
      const unit = call === 'insertMany' || call === 'stream' ? 'entries' : 'ops';
      const groupSize = this.#groups.get(call) ?? 1;
      const head = { suite: DOCUMENT_SUITE.name, engine: name, role, access: 'page', durability: 'relaxed' } as const;
      emit({ type: 'row', row: makeRow({ ...head, unit, groupSize, document: call }, rounds, isSound) });
    }
  }

  async close(): Promise<void> {
    await this.#store.close();
    await this.engine.remove(nameOf(this.engine));
  }

  /** How many calls are timed as one, so that the timer can tell. */
  async #groupOf(call: DocumentCall): Promise<number> {
    const task = this.#task(call, REHEARSED, 0);
    const start = now();
    await task.run(0, REHEARSED);
    const each_ms = (now() - start) / REHEARSED;
    return Math.max(1, Math.ceil((GROUP_STEPS * timerStepMs()) / Math.max(each_ms, 1e-3)));
  }

  #task(call: DocumentCall, calls: number, seed: number): Task {
    const tally: Tally = { ops: 0, bytes: 0, reads: 0, hits: 0, wrong: 0 };
    const random = new Random(0xd0c5 + seed);
    const run = async (from: number, to: number): Promise<number> => {
      for (let i = from; i < to; i++) await this.#call(call, random, tally);
      return to;
    };
    return { calls, tally, run, room: async () => undefined, finish: () => undefined, check: () => undefined };
  }

  async #call(call: DocumentCall, random: Random, tally: Tally): Promise<void> {
    switch (call) {
      case 'insert':
        await this.#insert();
        tally.ops++;
        return;
      case 'insertMany':
        await this.#insertMany(BATCH);
        tally.ops += BATCH;
        return;
      case 'stream':
        return this.#stream(random, tally);
      case 'get':
        await this.#get(random, tally);
        break;
      case 'update':
        await this.#update(random);
        break;
      case 'find':
        await this.#find(random, tally);
        break;
      case 'mix': {
        // Half gets, a fifth finds and a fifth updates; the rest inserts and deletes.
        const part = random.below(20);
        if (part < 10) await this.#get(random, tally);
        else if (part < 14) await this.#find(random, tally);
        else if (part < 18) await this.#update(random);
        else if (part < 19) await this.#insert();
        else await this.#delete(random);
      }
    }
    tally.ops++;
  }

  async #insert(): Promise<void> {
    const number = this.#revisions.length;
    this.#revise(number, 0);
    await this.#store.insert(personOf(number, 0, this.#count));
  }

  async #insertMany(count: number): Promise<void> {
    const first = this.#revisions.length;
    const people = Array.from({ length: count }, (_, i) => personOf(first + i, 0, this.#count));
    for (let i = 0; i < count; i++) this.#revise(first + i, 0);
    await this.#store.insertMany(people);
  }

  async #get(random: Random, tally: Tally): Promise<void> {
    const number = random.below(this.#revisions.length);
    const found = await this.#store.get(idOf(number));
    const expected = this.#expected(number);
    tally.reads++;
    if (found !== undefined) tally.hits++;
    if (found !== expected && !samePerson(found, expected)) tally.wrong++;
  }

  async #update(random: Random): Promise<void> {
    const number = this.#living(random);
    const revision = (this.#revisions[number] ?? 0) + 1;
    this.#revise(number, revision);
    const next = personOf(number, revision, this.#count);
    await this.#store.update(idOf(number), (old) => ({ ...old, ...next }));
  }

  async #delete(random: Random): Promise<void> {
    const number = this.#living(random);
    this.#revise(number, undefined);
    await this.#store.delete(idOf(number));
  }

  async #find(random: Random, tally: Tally): Promise<void> {
    const team = teamOf(random.below(this.#count), 0, this.#count);
    const found = await this.#store.ofTeam(team, FOUND);
    const expected = Math.min(FOUND, this.#teams.get(team) ?? 0);
    tally.reads += expected;
    tally.hits += found.length;
    if (found.length !== expected) tally.wrong++;
    let last = '';
    for (const person of found) {
      const isExpected = person.revision === this.#revisions[Number(person.id.slice(-8))];
      if (person.team !== team || person.id <= last || !isExpected) tally.wrong++;
      last = person.id;
    }
  }

  async #stream(random: Random, tally: Tally): Promise<void> {
    const from = personOf(random.below(Math.max(1, this.#count - STREAMED)), 0, this.#count).joined;
    let count = 0;
    let last = from.getTime();
    await this.#store.stream(from, (person) => {
      if (person.joined.getTime() < last) tally.wrong++;
      last = person.joined.getTime();
      return ++count < STREAMED;
    });
    tally.ops += count;
  }

  /** Notes what a document is from now on. */
  #revise(number: number, revision: number | undefined): void {
    const before = this.#revisions[number];
    for (const [of, change] of [
      [before, -1],
      [revision, 1],
    ] as const) {
      if (of === undefined) continue;
      const team = teamOf(number, of, this.#count);
      this.#teams.set(team, (this.#teams.get(team) ?? 0) + change);
    }
    this.#revisions[number] = revision;
  }

  /** The number of a document that is there. */
  #living(random: Random): number {
    for (;;) {
      const number = random.below(this.#revisions.length);
      if (this.#revisions[number] !== undefined) return number;
    }
  }

  #expected(number: number): Person | undefined {
    const revision = this.#revisions[number];
    return revision === undefined ? undefined : personOf(number, revision, this.#count);
  }
}

function nameOf({ name }: DocumentEngine): string {
  return `bench-documents-${name}`;
}

/** Documents that a search may give at most, for who reads the rows. */
export const SEARCHED = { found: FOUND, streamed: STREAMED, batch: BATCH, team: TEAM };
