// The life of a store on a full storage, the same for all storages and both APIs. Nearly all of the room is used, and deletes are accepted.
// The room that they free comes back by itself, all of it once everything is deleted. In every case, acknowledged writes are there, and
// refused writes are not.

import { expect } from 'vitest';
import { type Found, type FullStore, type StepResult, type steps, VALUE_BYTES } from './full-steps.ts';

type Steps = typeof steps;
/** The arguments of a step after the store. */
type Rest<S extends keyof Steps> = Parameters<Steps[S]> extends [FullStore, ...infer R] ? R : never;

/** A storage of little room with one store in it. */
export interface FullDriver {
  /** All of the room, in bytes; asked once the store is full. */
  readonly roomBytes: number;
  open(): Promise<void>;
  close(): Promise<void>;
  /** Ends the process or worker that has the store open, as a crash would. */
  kill(): Promise<void>;
  /** Runs a step in the open store. */
  call<S extends keyof Steps>(step: S, ...rest: Rest<S>): Promise<Awaited<ReturnType<Steps[S]>>>;
}

/** The requirements for a storage. */
export interface FullPlan {
  /** Which storage it is. */
  readonly name: string;
  /** The minimum part of the room that values take before one is refused: in a new store, and once more when everything was deleted. */
  readonly usable: number;
  /** The minimum part of the deleted bytes that can be set again soon; 0 where nothing is promised, and nothing is tried. */
  readonly backShare: number;
}

/** Room that deletes freed comes back within this time. */
const BACK_MS = 60_000;

/** Runs that life; returns the keys that are left. */
export async function liveFull(driver: FullDriver, { name, usable, backShare }: FullPlan): Promise<number[]> {
  let kept: number[] = [];
  const compare = async (): Promise<void> => {
    const found: Found = await driver.call('read');
    expect(found).toEqual({ keys: kept, wrong: [] });
  };
  const isRefused = ({ refusals }: StepResult): void => {
    for (const refusal of refusals) expect(refusal).toMatch(/^VARVE_STORAGE_FULL: .*[.]$/s);
  };

  await driver.open();
  const filled = await driver.call('fill', 0);
  isRefused(filled);
  expect(filled.refusals).not.toEqual([]);
  kept = filled.keys;
  const fits = driver.roomBytes / VALUE_BYTES;
  const wanted = Math.ceil(usable * fits);
  const shares = [`usable ${share(kept.length, fits)}`];
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
  const back = Math.ceil(half.length * backShare);
  const most = (count: number): number => (backShare > 0 ? count : 0);
  const again = await driver.call('again', 10_000, { wanted: back, most: most(half.length), ms: BACK_MS });
  isRefused(again);
  shares.push(`back ${share(again.keys.length, half.length)}`);
  kept.push(...again.keys);
  await compare();
  const { refusals } = await driver.call('compact');
  for (const refusal of refusals) expect(refusal).toMatch(/^VARVE_STORAGE_FULL: .* lacks up to \d+ MiB/);

  // The store is full once more, and is killed.
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

  // Once nothing is left there is as much room as in the beginning, whatever used the room before.
  expect(await driver.call('remove', kept)).toEqual({ keys: kept, refusals: [] });
  const anew = await driver.call('again', 30_000, { wanted, most: most(Math.floor(fits)), ms: BACK_MS });
  isRefused(anew);
  kept = anew.keys;
  shares.push(`usable again ${share(kept.length, fits)}`);
  console.log(`${name}: ${shares.join(', ')}`);
  await compare();
  await driver.close();
  await driver.open();
  await compare();
  expect(await driver.call('get', kept)).toEqual([]);
  expect(await driver.call('check')).toEqual([]);
  await driver.close();

  expect(filled.keys.length).toBeGreaterThanOrEqual(wanted);
  expect(again.keys.length).toBeGreaterThanOrEqual(back);
  expect(anew.keys.length).toBeGreaterThanOrEqual(most(wanted));
  return kept;
}

function share(part: number, whole: number): string {
  return `${Math.round((100 * part) / whole)} %`;
}
