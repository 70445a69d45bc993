/**
 * The suite `documents`: inserting, reading, updating and finding documents by secondary indexes, from the page; each call awaited, and as the
 * clients of a server would call, many at once.
 *
 * Invariant: rounds of the engines are interleaved, each beginning in turn. Documents are made before a call and compared after it, outside of what is
 * timed. Every read is compared with what was written, and at the end the whole store is walked by an index; a row whose checks failed says so.
 * Calls that are under way together write to documents of their own; what reads find of those may be as before or as after.
 */

import { GROUP_STEPS, now, timerStepMs } from '../../core/clock.ts';
import { Random } from '../../core/generator.ts';
import { measure, type Round } from '../../core/measure.ts';
import { budgetMs, type Emit, type Plan } from '../../core/plan.ts';
import { makeRow } from '../../core/rows.ts';
import type { Tally, Task } from '../../core/tasks/task.ts';
import { DOCUMENT_SUITE } from '../../core/workloads.ts';
import { dexieDocuments } from './dexie.ts';
import { idOf, type Person, personOf, samePerson, TEAM, teamOf } from './document.ts';
import { indexedDbDocuments } from './indexeddb.ts';
import type { DocumentEngine, DocumentStore } from './store.ts';
import { varveDocuments } from './varve.ts';

/** Engines of the suite; they run where the plan has engines of their names. */
const ENGINES: readonly DocumentEngine[] = [varveDocuments, indexedDbDocuments, dexieDocuments];
const DOCUMENTS = { quick: 1000, full: 10_000 };
const CALLS = { quick: 300, full: 5000 };
const BATCH = 100;
const FOUND = 20;
const STREAMED = 500;
/** Calls that tell how long one takes. */
const REHEARSED = 20;
/** Calls at once, in flight: S4 has so many clients. */
const CLIENTS = 100;

/** What a row counts. */
export const DOCUMENT_CALLS = ['insert', 'insertMany', 'get', 'update', 'find', 'stream', 'mix'] as const;
/** One of them. */
export type DocumentCall = (typeof DOCUMENT_CALLS)[number];
/** Those that many clients make at once. */
const IN_FLIGHT_CALLS: readonly DocumentCall[] = ['insert', 'get', 'update', 'find', 'mix'];

/** A call, and how it is made. */
interface Kind {
  readonly call: DocumentCall;
  readonly access: 'inflight' | 'page';
}

/** What calls that are prepared together write. */
interface Group {
  /** Documents to be inserted. */
  inserted: number;
  /** Revisions before and after, by numbers. */
  readonly written: Map<number, readonly (number | undefined)[]>;
}

/** A call that is prepared: only `go` is timed. */
interface Step {
  go(): Promise<unknown>;
  check(answer: unknown, tally: Tally): void;
}

/** Runs the suite. */
export async function runDocuments(plan: Plan, emit: Emit, signal: AbortSignal): Promise<void> {
  const engines = ENGINES.filter(({ name }) => plan.engines.includes(name));
  const kinds = (['page', 'inflight'] as const)
    .filter((access) => plan.accesses.includes(access))
    .flatMap((access) =>
      (access === 'page' ? DOCUMENT_CALLS : IN_FLIGHT_CALLS).map((call): Kind => ({ call, access })),
    );
  if (kinds.length === 0 || engines.length === 0) return;
  const contenders: Contender[] = [];
  try {
    for (const engine of engines) contenders.push(await Contender.open(engine, plan));
    let done = 0;
    const total = kinds.length * plan.rounds * engines.length;
    for (const kind of kinds) {
      for (let round = 0; round < plan.rounds; round++) {
        for (let turn = 0; turn < contenders.length; turn++) {
          signal.throwIfAborted();
          const contender = contenders[(turn + round) % contenders.length] as Contender;
          const how = kind.access === 'page' ? '' : ', many at once';
          const text = `documents: ${contender.engine.name}, ${kind.call}${how}, round ${round + 1} of ${plan.rounds}`;
          emit({ type: 'progress', done: done++, total, text });
          await contender.run(kind, round, signal);
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
  readonly #rounds = new Map<Kind, Round[]>();
  readonly #groups = new Map<Kind, number>();

  private constructor(engine: DocumentEngine, plan: Plan, store: DocumentStore) {
    this.engine = engine;
    this.#plan = plan;
    this.#store = store;
    // Whole batches, as it is loaded.
    this.#count = Math.max(1, Math.round((DOCUMENTS[plan.mode] * plan.scale) / BATCH)) * BATCH;
  }

  static async open(engine: DocumentEngine, plan: Plan): Promise<Contender> {
    await engine.remove(nameOf(engine));
    const contender = new Contender(engine, plan, await engine.open(nameOf(engine)));
    for (let from = 0; from < contender.#count; from += BATCH) await contender.#insert(groupOf(), BATCH).go();
    return contender;
  }

  /** Makes the calls of one round. */
  async run(kind: Kind, round: number, signal: AbortSignal): Promise<void> {
    const group = this.#groups.get(kind) ?? (await this.#sizeOf(kind));
    this.#groups.set(kind, group);
    const { custom, mode, scale } = this.#plan;
    const calls = custom.calls ?? Math.max(1, Math.round(CALLS[mode] * scale));
    const task = this.#task(kind, calls, group, round + 1);
    const together = kind.access === 'inflight';
    const limits = { group, budget_ms: budgetMs(this.#plan), calls_max: calls, together, signal };
    const rounds = this.#rounds.get(kind) ?? [];
    rounds.push(await measure(task, limits));
    this.#rounds.set(kind, rounds);
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
    for (const [kind, rounds] of this.#rounds) {
      const { call, access } = kind;
      const { name, role } = this.engine;
      const unit = call === 'insertMany' || call === 'stream' ? 'entries' : 'ops';
      const groupSize = this.#groups.get(kind) ?? 1;
      const head = { suite: DOCUMENT_SUITE.name, engine: name, role, access, durability: 'relaxed' } as const;
      emit({ type: 'row', row: makeRow({ ...head, unit, groupSize, phase: call }, rounds, isSound) });
    }
  }

  async close(): Promise<void> {
    await this.#store.close();
    await this.engine.remove(nameOf(this.engine));
  }

  /** How many calls are timed as one, so that the timer can tell. */
  async #sizeOf({ call, access }: Kind): Promise<number> {
    if (access === 'inflight') return this.#plan.custom.threads ?? CLIENTS;
    // Documents of a mix change from call to call: each is prepared after the one before it.
    if (call === 'mix') return 1;
    const task = this.#task({ call, access }, REHEARSED, REHEARSED, 0);
    const start = now();
    await task.run(0, REHEARSED);
    const each_ms = (now() - start) / REHEARSED;
    return Math.max(1, Math.ceil((GROUP_STEPS * timerStepMs()) / Math.max(each_ms, 1e-3)));
  }

  #task({ call, access }: Kind, calls: number, size: number, seed: number): Task {
    const tally: Tally = { ops: 0, bytes: 0, reads: 0, hits: 0, wrong: 0 };
    const random = new Random(0xd0c5 + seed);
    const prepare = (): Step[] => {
      const group = groupOf();
      return Array.from({ length: size }, () => this.#step(call, random, group));
    };
    const answers: unknown[] = [];
    let steps = prepare();
    return {
      calls,
      tally,
      run: async (from, to) => {
        const due = steps.slice(0, to - from);
        if (access === 'inflight') answers.push(...(await Promise.all(due.map((step) => step.go()))));
        else for (const step of due) answers.push(await step.go());
      },
      check: () => {
        for (const [i, answer] of answers.splice(0).entries()) steps[i]?.check(answer, tally);
        steps = prepare();
      },
      finish: () => undefined,
    };
  }

  /** The next call of a group. */
  #step(call: DocumentCall, random: Random, group: Group): Step {
    switch (call) {
      case 'insert':
        return this.#insert(group, 1);
      case 'insertMany':
        return this.#insert(group, BATCH);
      case 'get':
        return this.#get(random, group);
      case 'update':
        return this.#update(random, group);
      case 'find':
        return this.#find(random, group);
      case 'stream':
        return this.#stream(random);
      case 'mix': {
        // Half gets, a fifth finds and a fifth updates; the rest inserts and deletes.
        const part = random.below(20);
        if (part < 10) return this.#get(random, group);
        if (part < 14) return this.#find(random, group);
        if (part < 18) return this.#update(random, group);
        return part < 19 ? this.#insert(group, 1) : this.#delete(random, group);
      }
    }
  }

  #insert(group: Group, count: number): Step {
    const first = this.#revisions.length + group.inserted;
    group.inserted += count;
    for (let i = 0; i < count; i++) group.written.set(first + i, [undefined, 0]);
    const people = Array.from({ length: count }, (_, i) => personOf(first + i, 0, this.#count));
    const [person] = people as [Person];
    return {
      go: () => {
        for (let i = 0; i < count; i++) this.#revise(first + i, 0);
        return count === 1 ? this.#store.insert(person) : this.#store.insertMany(people);
      },
      check: (_, tally) => {
        tally.ops += count;
      },
    };
  }

  #get(random: Random, group: Group): Step {
    const number = random.below(this.#revisions.length);
    const id = idOf(number);
    const expected = this.#expected(number);
    return {
      go: () => this.#store.get(id),
      check: (answer, tally) => {
        const found = answer as Person | undefined;
        tally.ops++;
        tally.reads++;
        if (found !== undefined) tally.hits++;
        if (group.written.has(number)) return;
        if (found !== expected && !samePerson(found, expected)) tally.wrong++;
      },
    };
  }

  #update(random: Random, group: Group): Step {
    const number = this.#living(random, group);
    const revision = (this.#revisions[number] ?? 0) + 1;
    group.written.set(number, [this.#revisions[number], revision]);
    const id = idOf(number);
    const next = personOf(number, revision, this.#count);
    return {
      go: () => {
        this.#revise(number, revision);
        return this.#store.update(id, (old) => ({ ...old, ...next }));
      },
      check: countOne,
    };
  }

  #delete(random: Random, group: Group): Step {
    const number = this.#living(random, group);
    group.written.set(number, [this.#revisions[number], undefined]);
    return {
      go: () => {
        this.#revise(number, undefined);
        return this.#store.delete(idOf(number));
      },
      check: countOne,
    };
  }

  #find(random: Random, group: Group): Step {
    const team = teamOf(random.below(this.#count), 0, this.#count);
    const expected = Math.min(FOUND, this.#teams.get(team) ?? 0);
    return {
      go: () => this.#store.ofTeam(team, FOUND),
      check: (answer, tally) => {
        const found = answer as Person[];
        tally.ops++;
        tally.reads += expected;
        tally.hits += found.length;
        const isMoving = [...group.written].some(([number, revisions]) =>
          revisions.some((revision) => revision !== undefined && teamOf(number, revision, this.#count) === team),
        );
        if (found.length !== expected && !isMoving) tally.wrong++;
        let last = '';
        for (const person of found) {
          const number = Number(person.id.slice(-8));
          const isExpected = group.written.has(number) || samePerson(person, this.#expected(number));
          if (person.team !== team || person.id <= last || !isExpected) tally.wrong++;
          last = person.id;
        }
      },
    };
  }

  #stream(random: Random): Step {
    const from = personOf(random.below(Math.max(1, this.#count - STREAMED)), 0, this.#count).joined;
    const people: Person[] = [];
    return {
      go: () => this.#store.stream(from, (person) => people.push(person) < STREAMED),
      check: (_, tally) => {
        tally.ops += people.length;
        let last = from.getTime();
        for (const person of people) {
          const isExpected = samePerson(person, this.#expected(Number(person.id.slice(-8))));
          if (person.joined.getTime() < last || !isExpected) tally.wrong++;
          last = person.joined.getTime();
        }
      },
    };
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

  /** The number of a document that is there, and that no other call of the group writes. */
  #living(random: Random, { written }: Group): number {
    for (;;) {
      const number = random.below(this.#revisions.length);
      if (this.#revisions[number] !== undefined && !written.has(number)) return number;
    }
  }

  #expected(number: number): Person | undefined {
    const revision = this.#revisions[number];
    return revision === undefined ? undefined : personOf(number, revision, this.#count);
  }
}

function groupOf(): Group {
  return { inserted: 0, written: new Map() };
}

function countOne(_: unknown, tally: Tally): void {
  tally.ops++;
}

function nameOf({ name }: DocumentEngine): string {
  return `bench-documents-${name}`;
}

/** Documents that a search may give at most, for who reads the rows. */
export const SEARCHED = { found: FOUND, streamed: STREAMED, batch: BATCH, team: TEAM };
