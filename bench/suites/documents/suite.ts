/**
 * The suite `documents`: inserting, reading, updating and finding documents by secondary indexes, from the page; each call awaited, and as
 * the clients of a server would call, many at once.
 *
 * Invariant: rounds of the engines are interleaved, each beginning in turn. Documents are made before a call and compared after it, outside
 * of what is timed. Every read is compared with what was written, and at the end the whole store is walked by an index; a row whose checks
 * failed says so. Calls that are under way together write to documents of their own; what reads find of those may be as before or as after.
 */

import type { Access, Engine } from '../../core/engine.ts';
import { duration, rate } from '../../core/figures.ts';
import { Random } from '../../core/generator.ts';
import { rotated } from '../../core/loops.ts';
import { groupFor, measure, type Round } from '../../core/measure.ts';
import { budgetMs, type Plan } from '../../core/plan.ts';
import { type Context, register, report } from '../../core/suite.ts';
import { atLeast, atMost, type FigureOf, registerThresholds } from '../../core/targets.ts';
import { Calls, emptyTally, type Tally, type Task } from '../../core/tasks/task.ts';
import { idOf, type Person, personOf, samePerson, teamOf } from './document.ts';
import { type DocumentEngine, type DocumentStore, ENGINES } from './store.ts';

const NAME = 'documents';
const DOCUMENTS = { quick: 1000, full: 10_000 };
const CALLS = { quick: 300, full: 5000 };
const BATCH = 100;
const FOUND = 20;
const STREAMED = 500;
const REHEARSED = 20;
/** Calls at once, in flight: S4 has so many clients. */
const CLIENTS = 100;

const CALLS_TEXTS = {
  insert: 'insert',
  insertMany: `insertMany by ${BATCH}, documents`,
  get: 'get by key',
  update: 'update, two indexes change',
  find: `find by index, ${FOUND} documents`,
  stream: `stream by index, ${STREAMED} documents`,
  mix: 'mix: 50% get, 20% find, 20% update, 5% insert, 5% delete',
} as const;
type DocumentCall = keyof typeof CALLS_TEXTS;
const IN_FLIGHT_CALLS: readonly DocumentCall[] = ['insert', 'get', 'update', 'find', 'mix'];

function callsOf(access: Access): readonly DocumentCall[] {
  return access === 'page' ? (Object.keys(CALLS_TEXTS) as DocumentCall[]) : IN_FLIGHT_CALLS;
}

interface Group {
  inserted: number;
  readonly written: Map<number, readonly (number | undefined)[]>;
}

/** A call that is prepared: only `go` is timed. */
interface Step {
  go(): Promise<unknown>;
  check(answer: unknown, tally: Tally): void;
}

function enginesOf(engines: readonly Engine[]): DocumentEngine[] {
  return ENGINES.filter(({ name }) => engines.some((one) => one.name === name));
}

async function run(context: Context): Promise<void> {
  const { plan, engines, access, step, signal } = context;
  const contenders: Contender[] = [];
  try {
    for (const engine of enginesOf(engines)) contenders.push(await Contender.open(engine, plan, access));
    for (const call of callsOf(access)) {
      for (let round = 0; round < plan.rounds; round++) {
        for (const contender of rotated(contenders, round)) {
          step(`${NAME} (${access}): ${contender.engine.name}, ${call}, round ${round + 1} of ${plan.rounds}`);
          await contender.run(call, round, signal);
        }
      }
    }
    for (const contender of contenders) await contender.conclude(context);
  } finally {
    for (const contender of contenders) await contender.close();
  }
}

register({
  name: NAME,
  title: 'documents of 300 bytes with four secondary indexes, from the page',
  quick: true,
  accesses: ['page', 'inflight'],
  steps: (plan, engines, access) => callsOf(access).length * plan.rounds * enginesOf(engines).length,
  run,
});
const ofClients =
  (figure: 'p95' | 'opsPerSecond'): FigureOf =>
  (row) =>
    row.suite === NAME && row.access === 'inflight' ? row[figure] : undefined;
/** Those of S4. */
registerThresholds(
  atMost('documents, many clients, p95', 500_000, duration, ofClients('p95')),
  atLeast('documents, many clients, calls a second', 100, rate, ofClients('opsPerSecond')),
);

class Contender {
  readonly #count: number;
  readonly #revisions: (number | undefined)[] = [];
  readonly #teams = new Map<string, number>();
  readonly #rounds = new Map<DocumentCall, { readonly group: number; readonly rounds: Round[] }>();

  private constructor(
    readonly engine: DocumentEngine,
    private readonly plan: Plan,
    private readonly store: DocumentStore,
    private readonly isTogether: boolean,
  ) {
    // Whole batches, as it is loaded.
    this.#count = Math.max(1, Math.round((DOCUMENTS[plan.mode] * plan.scale) / BATCH)) * BATCH;
  }

  static async open(engine: DocumentEngine, plan: Plan, access: Access): Promise<Contender> {
    await engine.remove(nameOf(engine));
    const contender = new Contender(engine, plan, await engine.open(nameOf(engine)), access === 'inflight');
    for (let from = 0; from < contender.#count; from += BATCH) await contender.#insert(groupOf(), BATCH).go();
    return contender;
  }

  async run(call: DocumentCall, round: number, signal: AbortSignal): Promise<void> {
    const made = this.#rounds.get(call) ?? { group: await this.#sizeOf(call, signal), rounds: [] };
    this.#rounds.set(call, made);
    const { custom, mode, scale } = this.plan;
    const calls = custom.calls ?? Math.max(1, Math.round(CALLS[mode] * scale));
    made.rounds.push(await this.#measured(call, calls, made.group, round + 1, signal));
  }

  async conclude(context: Context): Promise<void> {
    const expected = this.#revisions.filter((revision) => revision !== undefined).length;
    let wrong = 0;
    let seen = 0;
    let last = 0;
    await this.store.stream(new Date(0), (person) => {
      if (!this.#isRight(person) || person.joined.getTime() < last) wrong++;
      last = person.joined.getTime();
      seen++;
      return true;
    });
    const isSound = wrong === 0 && seen === expected;
    const problem = isSound ? undefined : `${wrong} documents are wrong, ${seen} of ${expected} are there.`;
    for (const [call, { group, rounds }] of this.#rounds) {
      const unit = call === 'insertMany' || call === 'stream' ? 'entries' : 'ops';
      const head = { suite: NAME, unit, groupSize: group, phase: CALLS_TEXTS[call] } as const;
      report(context, this.engine, head, rounds, problem);
    }
  }

  async close(): Promise<void> {
    await this.store.close();
    await this.engine.remove(nameOf(this.engine));
  }

  /** How many calls are timed as one, so that they last long enough for the timer. */
  async #sizeOf(call: DocumentCall, signal: AbortSignal): Promise<number> {
    if (this.isTogether) return CLIENTS;
    // Documents of a mix change from call to call: each is prepared after the one before it.
    if (call === 'mix') return 1;
    return groupFor((await this.#measured(call, REHEARSED, REHEARSED, 0, signal)).latencies);
  }

  #measured(call: DocumentCall, calls: number, group: number, seed: number, signal: AbortSignal): Promise<Round> {
    const limits = { group, budgetMs: budgetMs(this.plan), callsMax: calls, together: this.isTogether, signal };
    return measure(this.#task(call, calls, group, seed), limits);
  }

  #task(call: DocumentCall, calls: number, size: number, seed: number): Task {
    const tally = emptyTally();
    const random = new Random(0xd0c5 + seed);
    let steps: Step[] = [];
    return new Calls<unknown>(tally, {
      calls,
      waves: this.isTogether,
      group: size,
      prepare: (from, to) => {
        const group = groupOf();
        steps = Array.from({ length: to - from }, () => this.#step(call, random, group));
      },
      run: (at) => steps[at % size]?.go(),
      check: (at, answer) => steps[at % size]?.check(answer, tally),
    });
  }

  #step(call: DocumentCall, random: Random, group: Group): Step {
    const steps: Readonly<Record<DocumentCall, () => Step>> = {
      insert: () => this.#insert(group, 1),
      insertMany: () => this.#insert(group, BATCH),
      get: () => this.#get(random, group),
      update: () => this.#update(random, group),
      find: () => this.#find(random, group),
      stream: () => this.#stream(random),
      mix: () => {
        // Half gets, a fifth finds and a fifth updates; the rest inserts and deletes.
        const part = random.below(20);
        if (part < 10) return steps.get();
        if (part < 14) return steps.find();
        if (part < 18) return steps.update();
        return part < 19 ? steps.insert() : this.#delete(random, group);
      },
    };
    return steps[call]();
  }

  #writing(group: Group, numbers: readonly number[], revision: number | undefined, go: () => Promise<unknown>): Step {
    for (const number of numbers) group.written.set(number, [this.#revisions[number], revision]);
    return {
      go: () => {
        for (const number of numbers) this.#revise(number, revision);
        return go();
      },
      check: (_, tally) => {
        tally.ops += numbers.length;
      },
    };
  }

  #insert(group: Group, count: number): Step {
    const first = this.#revisions.length + group.inserted;
    group.inserted += count;
    const people = Array.from({ length: count }, (_, i) => personOf(first + i, 0, this.#count));
    const [person] = people as [Person];
    const numbers = people.map((_, i) => first + i);
    return this.#writing(group, numbers, 0, () =>
      count === 1 ? this.store.insert(person) : this.store.insertMany(people),
    );
  }

  #get(random: Random, group: Group): Step {
    const number = random.below(this.#revisions.length);
    const id = idOf(number);
    const expected = this.#expected(number);
    return {
      go: () => this.store.get(id),
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
    const id = idOf(number);
    const next = personOf(number, revision, this.#count);
    return this.#writing(group, [number], revision, () => this.store.update(id, (old) => ({ ...old, ...next })));
  }

  #delete(random: Random, group: Group): Step {
    const number = this.#living(random, group);
    return this.#writing(group, [number], undefined, () => this.store.delete(idOf(number)));
  }

  #find(random: Random, group: Group): Step {
    const team = teamOf(random.below(this.#count), 0, this.#count);
    const expected = Math.min(FOUND, this.#teams.get(team) ?? 0);
    return {
      go: () => this.store.ofTeam(team, FOUND),
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
          const isExpected = group.written.has(numberOf(person)) || this.#isRight(person);
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
      go: () => this.store.stream(from, (person) => people.push(person) < STREAMED),
      check: (_, tally) => {
        tally.ops += people.length;
        let last = from.getTime();
        for (const person of people) {
          if (person.joined.getTime() < last || !this.#isRight(person)) tally.wrong++;
          last = person.joined.getTime();
        }
      },
    };
  }

  #revise(number: number, revision: number | undefined): void {
    const count = (of: number | undefined, change: number): void => {
      if (of === undefined) return;
      const team = teamOf(number, of, this.#count);
      this.#teams.set(team, (this.#teams.get(team) ?? 0) + change);
    };
    count(this.#revisions[number], -1);
    count(revision, 1);
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

  #isRight(person: Person): boolean {
    return samePerson(person, this.#expected(numberOf(person)));
  }
}

function groupOf(): Group {
  return { inserted: 0, written: new Map() };
}

function numberOf({ id }: Person): number {
  return Number(id.slice(-8));
}

function nameOf({ name }: DocumentEngine): string {
  return `bench-documents-${name}`;
}
