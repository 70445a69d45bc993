// The global `damage`, which the damage test and its worker share.

/** One byte of one file, and which of its bits are flipped. */
export interface Place {
  readonly file: string;
  readonly offset: number;
  readonly mask: number;
}

/** The results of a store over all damages. */
export interface Damaged {
  /** Its report when it is undamaged, and how many log entries it then has. */
  readonly state: string;
  readonly logged: number;
  /** How often everything was right, it reported VARVE_CORRUPT, or it dropped the last group and reported that. */
  readonly right: number;
  readonly corrupt: number;
  readonly torn: number;
  /** Every other result, with the place of the damage. */
  readonly wrong: readonly string[];
}

export interface Damage {
  /** Makes a store with tables and so many entries in its log, and closes it. */
  build(name: string, logged: number): Promise<void>;
  /** Makes a store and keeps writing log entries, each flushed, until the browser is killed; reports each. */
  writeForever(name: string): Promise<never>;
  /** Damages one byte of a store that nobody has open, reads it, repairs the byte, and so on over `count` places. */
  sweep(name: string, count: number, seed: number): Promise<Damaged>;
}

declare global {
  var damage: Damage;
}
