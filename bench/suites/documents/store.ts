/**
 * The store of documents that the suite needs: a primary key and indexes over `email` (unique), `team`, `skills` (several values) and `joined`.
 *
 * Invariant: every method resolves when it is done as durably as `relaxed` asks; reads deliver documents of their own.
 */

import type { Role } from '../../core/engine.ts';
import type { Person } from './document.ts';

/** A store that is open. */
export interface DocumentStore {
  insert(person: Person): Promise<unknown>;
  insertMany(people: readonly Person[]): Promise<unknown>;
  get(id: string): Promise<Person | undefined>;
  /** Reads the document and writes what `change` makes of it, atomically. */
  update(id: string, change: (old: Person) => Person): Promise<unknown>;
  delete(id: string): Promise<unknown>;
  /** The first `limit` documents of a team, by their keys. */
  ofTeam(team: string, limit: number): Promise<Person[]>;
  /** Hands over the documents that joined from `from` on, in that order, one by one, until `take` answers false. */
  stream(from: Date, take: (person: Person) => boolean): Promise<void>;
  close(): Promise<void>;
}

export interface DocumentEngine {
  readonly name: string;
  readonly role: Role;
  open(name: string): Promise<DocumentStore>;
  /** Deletes a store, if there is one. */
  remove(name: string): Promise<unknown>;
}
