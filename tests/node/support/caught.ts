/** Whether a clause of the contract of storages detects that a storage is broken. */

import { expect } from 'vitest';

/** The clauses for a storage, by name. */
type Clauses = ReadonlyMap<string, () => Promise<void>>;

/** The name of the only clause that begins with this text. */
export function clauseNamed(clauses: Clauses, start: string): string {
  const names = [...clauses.keys()].filter((name) => name.startsWith(start));
  if (names.length !== 1) throw new Error(`${names.length} clauses begin with "${start}"`);
  return names[0] as string;
}

/** Fails unless the clause that begins with this text fails, and not because of a mistake in the broken storage's own code. */
export async function expectCaught(clauses: Clauses, start: string): Promise<void> {
  const name = clauseNamed(clauses, start);
  await expect(clauses.get(name)?.(), name).rejects.not.toSatisfy(isMistake);
}

const isMistake = (error: unknown): boolean => error instanceof TypeError || error instanceof ReferenceError;
