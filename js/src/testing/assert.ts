/**
 * Assertions of the contract: a failed one throws an error that states what was expected of the storage.
 *
 * Invariant: no test framework is needed. For bytes, the message shows the first difference.
 */

import { VarveError, type VarveErrorCode } from '../errors.ts';
import { SlotError, type SlotErrorKind } from '../storage/device.ts';

/** Thrown if a storage breaks its contract. */
export class ContractError extends Error {
  constructor(message: string) {
    super(message);
    this.name = 'ContractError';
  }
}

/** Throws unless `isTrue` is true. */
export function expect(isTrue: boolean, message: string): asserts isTrue {
  if (!isTrue) throw new ContractError(message);
}

/** Throws unless both are the same number, string or boolean, or arrays of such. */
export function expectEqual(found: unknown, expected: unknown, what: string): void {
  const [a, b] = [JSON.stringify(found), JSON.stringify(expected)];
  if (a !== b) throw new ContractError(`${what}: ${a} instead of ${b}.`);
}

/** Throws unless both contain the same bytes. */
export function expectBytes(found: Uint8Array, expected: Uint8Array, what: string): void {
  if (found.length !== expected.length) {
    throw new ContractError(`${what}: ${found.length} bytes instead of ${expected.length}.`);
  }
  const at = found.findIndex((byte, i) => byte !== expected[i]);
  if (at !== -1) throw new ContractError(`${what}: byte ${at} is ${found[at]} instead of ${expected[at]}.`);
}

/** Throws unless the call throws a `SlotError` of this kind. */
export function expectRefused(call: () => unknown, kind: SlotErrorKind, what: string): void {
  let answer: unknown;
  try {
    answer = call();
  } catch (error) {
    if (error instanceof SlotError && error.kind === kind) return;
    throw new ContractError(`${what} throws ${shown(error)} instead of a SlotError of kind '${kind}'.`);
  }
  throw new ContractError(`${what} answers ${String(answer)} instead of throwing a SlotError of kind '${kind}'.`);
}

/** Throws unless the promise rejects with a `VarveError` of this code. */
export async function expectRejected(promise: Promise<unknown>, code: VarveErrorCode, what: string): Promise<void> {
  try {
    await promise;
  } catch (error) {
    if (error instanceof VarveError && error.code === code) return;
    throw new ContractError(`${what} rejects with ${shown(error)} instead of ${code}.`);
  }
  throw new ContractError(`${what} resolves instead of rejecting with ${code}.`);
}

function shown(error: unknown): string {
  if (error instanceof SlotError) return `a SlotError of kind '${error.kind}' (${error.message})`;
  if (error instanceof VarveError) return `${error.code} (${error.message})`;
  return String(error);
}
