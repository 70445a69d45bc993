// What the damage test and its worker share: the global `damage`.

/** One byte of one file, and which of its bits are flipped. */
export interface Place {
  readonly file: string;
  readonly offset: number;
  readonly mask: number;
}

/** What a store answered over all damages. */
export interface Damaged {
  /** What it says of itself undamaged, and how many log entries it then holds. */
  readonly state: string;
  readonly logged: number;
  /** Times that everything was right, that it said VARVE_CORRUPT, that it dropped the last group and said so. */
  readonly right: number;
  readonly corrupt: number;
  readonly torn: number;
  /** Every other answer, with the place of the damage. */
  readonly wrong: readonly string[];
}

export interface Damage {
  /** Makes a store with tables and so many entries in its log, and closes it. */
  build(name: string, logged: number): Promise<void>;
  /** Makes a store and goes on to log entries, each flushed, until the browser is killed; tells each. */
  writeForever(name: string): Promise<never>;
  /** Damages one byte of a store that nobody has open, reads it, mends it, and so on over `count` places. */
  sweep(name: string, count: number, seed: number): Promise<Damaged>;
}

declare global {
  var damage: Damage;
}
