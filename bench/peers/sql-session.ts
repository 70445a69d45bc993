/**
 * A session over a connection of SQLite whose calls return at once: the wasm build in the browser, a native one on Node.
 *
 * Invariant: a call is one transaction. Point calls of a grouped session are joined, up to `group` in a transaction.
 */

import type { PointCall, SyncSession } from '../core/engine.ts';
import { getsThenSets, setsOf } from './runs.ts';

export interface Statements extends Pick<SyncSession, 'set' | 'get' | 'delete' | 'range'> {
  deleteRange: NonNullable<SyncSession['deleteRange']>;
  begin(): void;
  commit(): void;
}

export type SqlSession = Required<Omit<SyncSession, 'report'>> & {
  /** Many point calls in one transaction, in their order: those that came in one message. */
  wave(calls: readonly PointCall[]): (Uint8Array | undefined)[];
};

type Between = Pick<SyncSession, 'settle' | 'close'>;

/** `between` are the calls between measurements; no transaction is open then. */
export function sqlSession(statements: Statements, between: Between, group = 1): SqlSession {
  let joined = 0;
  const commit = (): void => {
    if (joined === 0) return;
    joined = 0;
    statements.commit();
  };
  /** One more call of the transaction, which begins with the first and ends with the last. */
  const join = (): void => {
    if (group === 1) return;
    if (joined === group) commit();
    if (joined++ === 0) statements.begin();
  };
  const wave = (calls: readonly PointCall[]): (Uint8Array | undefined)[] => {
    commit();
    statements.begin();
    const found = calls.map(({ key, value }) => {
      if (value === undefined) return statements.get(key);
      if (value === null) statements.delete(key);
      else statements.set(key, value);
      return undefined;
    });
    statements.commit();
    return found;
  };
  return {
    kind: 'sync',
    set: (key, value) => {
      join();
      statements.set(key, value);
    },
    get: (key) => {
      join();
      return statements.get(key);
    },
    delete: (key) => {
      join();
      statements.delete(key);
    },
    deleteRange: (from, to) => {
      join();
      statements.deleteRange(from, to);
    },
    range: statements.range,
    batch: (entries) => wave(setsOf(entries)),
    transact: (entries) => wave(getsThenSets(entries)).slice(0, entries.keys.length),
    wave,
    commit,
    settle: (where, entries) => {
      commit();
      return between.settle(where, entries);
    },
    close: () => {
      commit();
      return between.close();
    },
  };
}
