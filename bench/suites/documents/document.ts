/**
 * The documents of the suite: seeded, the same in every run, engine and browser.
 *
 * Invariant: a document follows from its number and its revision alone, so what any read delivers can be compared with what was written.
 */

import { Random } from '../../core/generator.ts';

export interface Person {
  readonly id: string;
  readonly email: string;
  readonly team: string;
  readonly skills: readonly string[];
  readonly joined: Date;
  readonly revision: number;
  readonly about: string;
}

const SKILLS = ['sail', 'weld', 'type', 'row', 'cook', 'sing', 'dig', 'draw'];
const TEAM = 50;

export function idOf(number: number): string {
  return `person-${String(number).padStart(8, '0')}`;
}

/** The team of a document at a revision: each one moves it. */
export function teamOf(number: number, revision: number, count: number): string {
  return `team-${(number * 7 + revision) % Math.max(1, Math.ceil(count / TEAM))}`;
}

/** A document. `count` is how many there are, so that teams are of one size. */
export function personOf(number: number, revision: number, count: number): Person {
  const random = new Random(number * 31 + revision);
  const first = random.below(SKILLS.length);
  return {
    id: idOf(number),
    email: `${number}@example.org`,
    team: teamOf(number, revision, count),
    skills: [SKILLS[first] as string, SKILLS[(first + 3) % SKILLS.length] as string],
    joined: new Date(1_700_000_000_000 + number * 1000 + (revision % 1000)),
    revision,
    about: `${random.next()} `.repeat(14),
  };
}

export function samePerson(a: Person | undefined, b: Person | undefined): boolean {
  return a !== undefined && JSON.stringify(a) === JSON.stringify(b);
}
