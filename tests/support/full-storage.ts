// The life of a store on a full storage, the same for all storages: nearly all of the room is used, deletes are taken, what they free
// comes back by itself, and whatever happens meanwhile, what was acknowledged is there and what was refused is not.

import { expect } from 'vitest';
import { type Found, type FullStore, type steps, type Told, VALUE_BYTES } from './full-steps.ts';

type Steps = typeof steps;
/** What follows the store in the arguments of a step. */
type Rest<S extends keyof Steps> = Parameters<Steps[S]> extends [FullStore, ...infer R] ? R : never;

/** A storage of little room with one store in it. */
export interface FullDriver {
  /** All of the room, in bytes. */
  readonly roomBytes: number;
  open(): Promise<void>;
  close(): Promise<void>;
  /** Ends whoever has the store open, as a crash would. */
  kill(): Promise<void>;
  /** Does a step in the open store. */
  call<S extends keyof Steps>(step: S, ...rest: Rest<S>): Promise<Awaited<ReturnType<Steps[S]>>>;
}

/** What is asked of a storage. */
export interface FullPlan {
  /** The part of the room that values take before one is refused, at least. */
  readonly usable: number;
  /** The part of what is deleted that can be set again soon, at least; 0 where nothing is promised of it. */
  readonly backShare: number;
}

/** Within this time room that deletes freed comes back. */
const BACK_MS = 60_000;

/** Lives through it. */
export async function liveFull(driver: FullDriver, { usable, backShare }: FullPlan): Promise<void> {
  let kept: number[] = [];
  const compare = async (): Promise<void> => {
    const found: Found = await driver.call('read');
    expect(found).toEqual({ keys: kept, wrong: [] });
  };
  const isRefused = ({ refusals }: Told): void => {
    for (const refusal of refusals) expect(refusal).toMatch(/^VARVE_STORAGE_FULL: .*[.]$/s);
  };

  await driver.open();
  const filled = await driver.call('fill', 0);
  isRefused(filled);
  expect(filled.refusals).not.toEqual([]);
  kept = filled.keys;
  expect(kept.length * VALUE_BYTES).toBeGreaterThan(usable * driver.roomBytes);
  await compare();

  await driver.close();
  await driver.open();
  await compare();
  await driver.kill();
  await driver.open();
  await compare();

  const half = kept.filter((_, i) => i % 2 === 0);
  expect(await driver.call('remove', half)).toEqual({ keys: half, refusals: [] });
  kept = kept.filter((_, i) => i % 2 === 1);
  await compare();
  const wanted = Math.ceil(half.length * backShare);
  const again = await driver.call('again', 10_000, wanted, BACK_MS);
  isRefused(again);
  expect(again.keys).toHaveLength(wanted);
  kept.push(...again.keys);
  await compare();
  const { refusals } = await driver.call('compact');
  for (const refusal of refusals) expect(refusal).toMatch(/^VARVE_STORAGE_FULL: .* lacks up to \d+ MiB/);

  // Full once more, and killed.
  const refilled = await driver.call('fill', 20_000);
  isRefused(refilled);
  kept.push(...refilled.keys);
  await driver.kill();
  await driver.open();
  await compare();
  const first = kept.slice(0, 10);
  expect(await driver.call('remove', first)).toEqual({ keys: first, refusals: [] });
  kept = kept.slice(10);
  await compare();

  // Once nothing is left there is room, whatever was in the way.
  if (backShare > 0) {
    expect(await driver.call('remove', kept)).toEqual({ keys: [...kept].sort((a, b) => a - b), refusals: [] });
    const anew = await driver.call('again', 30_000, 5, BACK_MS);
    isRefused(anew);
    expect(anew.keys).toHaveLength(5);
    kept = anew.keys;
  }
  await driver.close();
  await driver.open();
  await compare();
  await driver.close();
}
