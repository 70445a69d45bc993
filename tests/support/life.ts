// The writes of tabs that share a store while they are killed, and the judge of the content afterwards.
//
//   life    one page, from when it opens the store to its end; a page that is loaded again is another life
//   group   one call of a life: a write, or a batch. A seed decides life, group by group, what it writes:
//
//     [life, 'ring', key]   a ring of keys that are set, overwritten and deleted
//     [life, 'once', n]     set by group n on the condition that it is not there, deleted some groups later
//
// Every value names the group and the operation that wrote it. So the entries of a life in a store show which prefix of its groups was
// applied, and also show an operation that is applied a second time, after later ones.

import { randomFrom } from './random.ts';

const RING = 300;
/** For how many groups a conditional entry stays after the group that wrote it. */
const ONCE_KEPT = 40;
/** The number of groups that are judged behind the last one that left an entry: later groups may have only deleted. */
const GROUPS_BEHIND_MAX = 100;

/** The parts of an entry's key after the life. */
export type Place = readonly [kind: 'once' | 'ring', number: number];

export type LifeOp =
  | { readonly kind: 'set'; readonly place: Place }
  /** Refused if the entry exists. */
  | { readonly kind: 'create'; readonly place: Place }
  | { readonly kind: 'delete'; readonly place: Place }
  | { readonly kind: 'deleteRange'; readonly from: Place; readonly to: Place };

/** Writes that happen together. */
export interface LifeGroup {
  readonly ops: readonly LifeOp[];
  readonly durability: 'relaxed' | 'strict';
  /** Whether the life waits for it before it continues. */
  readonly wait: boolean;
}

export interface LifePlan {
  readonly seed: number;
  readonly life: number;
}

/** Which operation wrote an entry. */
export interface Written {
  readonly group: number;
  readonly op: number;
}

/** An entry that was found under a life. */
export interface LifeEntry extends Written {
  readonly place: Place;
  readonly sequence: number;
}

/** Group number `index` of a life. */
export function lifeGroup({ seed, life }: LifePlan, index: number): LifeGroup {
  const random = randomFrom(seed, life, index);
  const count = random(2) === 0 ? 1 : 2 + random(15);
  const ops = Array.from({ length: count }, (): LifeOp => {
    const key = random(RING);
    const kind = random(100);
    if (kind < 84) return { kind: 'set', place: ['ring', key] };
    if (kind < 97) return { kind: 'delete', place: ['ring', key] };
    return { kind: 'deleteRange', from: ['ring', key], to: ['ring', key + 1 + random(10)] };
  });
  if (random(4) === 0) ops.push({ kind: 'create', place: ['once', index] });
  if (random(16) === 0 && index > ONCE_KEPT) {
    ops.push({ kind: 'deleteRange', from: ['once', 0], to: ['once', index - ONCE_KEPT] });
  }
  return { ops, durability: random(100) < 97 ? 'relaxed' : 'strict', wait: random(8) === 0 };
}

/** The value that an operation stores. */
export function lifeValue(life: number, { group, op }: Written): { group: number; op: number; text: string } {
  const random = randomFrom(life, group, op);
  const length = random(50) === 0 ? 3000 : 20 + random(180);
  return { group, op, text: String.fromCharCode(97 + random(26)).repeat(length) };
}

/** The operation that stored a value; undefined where no operation of the life stored it. */
export function writtenIn(life: number, value: unknown): Written | undefined {
  const { group, op, text } = (value ?? {}) as { group?: unknown; op?: unknown; text?: unknown };
  if (typeof group !== 'number' || typeof op !== 'number') return undefined;
  return lifeValue(life, { group, op }).text === text ? { group, op } : undefined;
}

/** The entries that a life's groups so far leave in the store. */
export class LifeModel {
  readonly #entries = new Map<string, Written>();

  /** The operation whose value an entry has; undefined where there is no entry. */
  at(place: Place): Written | undefined {
    return this.#entries.get(textOf(place));
  }

  /** All entries of a kind. */
  of(kind: Place[0]): Map<string, Written> {
    return new Map([...this.#entries].filter(([text]) => text.startsWith(kind)));
  }

  apply({ ops }: LifeGroup, group: number): void {
    ops.forEach((op, i) => {
      if (op.kind === 'deleteRange') {
        const [kind, from] = op.from;
        // Looks only at the places that have been set, because the numbers may be far apart.
        for (const text of [...this.#entries.keys()]) {
          const number = Number(text.slice(kind.length));
          if (text.startsWith(kind) && number >= from && number < op.to[1]) this.#entries.delete(text);
        }
      } else if (op.kind === 'delete') this.#entries.delete(textOf(op.place));
      else this.#entries.set(textOf(op.place), { group, op: i });
    });
  }

  /** How these entries differ from it, in words; empty when they are the same. */
  differences(found: readonly LifeEntry[]): string[] {
    const left = new Map(this.#entries);
    const wrong: string[] = [];
    for (const { place, group, op } of found) {
      const expected = left.get(textOf(place));
      left.delete(textOf(place));
      if (expected?.group === group && expected.op === op) continue;
      wrong.push(`${textOf(place)} is of ${group}.${op}, not of ${expected && `${expected.group}.${expected.op}`}`);
    }
    for (const [text, { group, op }] of left) wrong.push(`${text} is missing: ${group}.${op} set it`);
    return wrong;
  }
}

/** A place as text; the models use it as a key. */
export function textOf([kind, number]: Place): string {
  return kind + number;
}

/** Judges one life, from its first group to its last. */
export class LifeJudge {
  readonly plan: LifePlan;
  readonly #model = new LifeModel();
  #groups = 0;

  constructor(plan: LifePlan) {
    this.plan = plan;
  }

  /** The entries of a life that runs, and whose calls are all answered: exactly those of its groups. */
  expect(groups: number, found: readonly LifeEntry[]): void {
    this.#advance(groups);
    this.#refuse(groups, this.#model.differences(found));
  }

  /**
   * The entries of a life that ended: those of a prefix of its groups that contains all acknowledged ones.
   * @returns how many groups that are
   */
  survive(acknowledged: number, found: readonly LifeEntry[]): number {
    this.#advance(acknowledged);
    const wrong = this.#model.differences(found);
    const last = Math.max(acknowledged, ...found.map(({ group }) => group + 1));
    for (let groups = acknowledged; groups <= last + GROUPS_BEHIND_MAX; groups++) {
      this.#advance(groups);
      if (this.#model.differences(found).length === 0) return groups;
    }
    return this.#refuse(acknowledged, wrong);
  }

  #advance(groups: number): void {
    for (; this.#groups < groups; this.#groups++) {
      this.#model.apply(lifeGroup(this.plan, this.#groups), this.#groups);
    }
  }

  #refuse(groups: number, wrong: readonly string[]): number {
    if (wrong.length === 0) return groups;
    const first = wrong.slice(0, 8).join('; ');
    throw new Error(`life ${this.plan.life}, ${groups} groups acknowledged: ${wrong.length} faults: ${first}`);
  }
}
