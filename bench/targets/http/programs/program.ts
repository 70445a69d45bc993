/**
 * The parts that all programs that serve a store share.
 *
 * Invariant: a program writes one line, the JSON of its `Address`, when it answers requests. It ends when its standard input
 * ends, so none is left behind, however the benchmark that started it ended.
 */

import process from 'node:process';
import type { Durability } from 'varve';

export interface Options {
  readonly directory: string;
  /** The level of writes that name none; a Durable Object knows only `strict`. */
  readonly durability: Durability;
  /** Which form of the program: `deno-kv` keeps the store in a database of Deno KV, `node-uncached` has no cache of reads. */
  readonly runtime?: string;
}

export interface Address {
  readonly url: string;
  readonly versions: string;
}

export const options = JSON.parse(process.argv[2] ?? '{}') as Options;

/** Reports the address, and waits until the benchmark is done with the program or has ended; then closes and exits. */
export async function serveUntilDismissed(address: Address, close: () => Promise<unknown>): Promise<void> {
  process.stdout.write(`${JSON.stringify(address)}\n`);
  await new Promise((resolve) => process.stdin.once('close', resolve).once('end', resolve).resume());
  await close();
  process.exit();
}
