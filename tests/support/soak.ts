// A store in mixed use for a long time, which leaves much behind. Iterators, snapshots and followers are dropped, left early or aborted in
// all ways. Transactions fail, and queries lose their listeners. Other stores are opened and closed beside it.
//
// Invariant: a lap does the same as the one before, on data that stay within a ring of keys. So the counts at the end of a lap must not
// grow. With a planted leak, one kind of those things is kept, and some count grows.

import type { ChangeIterator, Key, Store } from 'varve';
import { type Collection, collection } from 'varve/collections';
import type { Lap } from './flat.ts';
import { type Random, randomFrom } from './random.ts';

/** Where a soak takes place. */
export interface Place {
  /** Opens a store. The first store is open for the whole soak. */
  open(name: string): Promise<Store<Key, unknown>>;
  /** Deletes a store that is closed. */
  remove(name: string): Promise<unknown>;
  /** Collects garbage, and lets the finalizers run. */
  collect(): Promise<void>;
  /** Sends a value and gets it back, in the same way as calls of a store here, to measure the cost of that at the time. */
  echo(value: object): Promise<unknown>;
  /** The counts that are available here. */
  count(): Promise<Record<string, number>>;
}

/** Things that a soak uses and drops; a leak keeps one kind of them. */
export const FORGOTTEN = ['iterators', 'snapshots', 'followers', 'queries', 'stores'] as const;
type Forgotten = (typeof FORGOTTEN)[number];
/** With `closing`, some stores are not closed. */
export type Leak = Forgotten | 'closing';

/** The parameters of a soak. */
export interface SoakPlan {
  readonly seed: number;
  readonly leak?: Leak | undefined;
}

interface Note {
  readonly id: number;
  readonly title: string;
  readonly tags: readonly string[];
}

const KEYS = 1500;
const SIDE_STORES = 8;
/** Stores that a leak leaves open in a lap. */
const LEFT_OPEN = 2;
const NOTES = 60;
/** How often each of the cheap uses runs in a lap. */
const TIMES = 8;
/** Calls are timed in rounds, and the shortest round counts: other work on the machine makes some of them longer. */
const ROUNDS_TIMED = 6;
const CALLS_TIMED = 10;
/** How often garbage is collected until nothing dropped is open any more. */
const COLLECTIONS_MAX = 20;

const ECHOED = { list: Array.from({ length: 100 }, (_, n) => ({ n })) };

/** Stores opened in a lap. */
export const OPENS = 10;

/** A soak that is under way. */
export class Soak {
  readonly #place: Place;
  readonly #random: Random;
  readonly #leak: Leak | undefined;
  readonly #db: Store<Key, unknown>;
  readonly #notes: Pick<
    Collection<Note, number, { title: string; tags: string }, Note>,
    'put' | 'update' | 'delete' | 'find' | 'count'
  >;
  readonly #kept: object[] = [];
  readonly #forgotten = Object.fromEntries(FORGOTTEN.map((kind) => [kind, new Set()])) as Record<
    Forgotten,
    Set<WeakRef<object>>
  >;
  readonly #stopped = new AbortController();
  /** The follower that runs from the first lap to the last: the sequence that it has reached. */
  #followed = 0;
  #laps = 0;

  private constructor(place: Place, db: Store<Key, unknown>, { seed, leak }: SoakPlan) {
    this.#place = place;
    this.#db = db;
    this.#random = randomFrom(seed);
    this.#leak = leak;
    this.#notes = collection<Note>()(db, 'notes', {
      key: 'id',
      indexes: { title: 'title', tags: { of: (note) => note.tags, multi: true } },
    });
  }

  static async start(place: Place, plan: SoakPlan): Promise<Soak> {
    const soak = new Soak(place, await place.open('soak'), plan);
    void soak.#follow();
    return soak;
  }

  /** Uses everything, and takes the counts. */
  async lap(): Promise<Lap> {
    const lap = this.#laps++;
    await this.#write();
    await this.#iterate();
    await this.#hold();
    await this.#watch();
    await this.#look();
    await this.#transact();
    await this.#keepNotes();
    if (lap % 4 === 0) await this.#maintain();
    const open = await this.#openOthers(lap);
    const { control, get, set, scan } = await this.#time();
    return {
      counts: await this.#count(),
      times: { get: get / control, set: set / control, scan: scan / control, open: open / control },
    };
  }

  /** Closes the store; its follower must have received every write. */
  async end(): Promise<void> {
    const { sequence } = await this.#db.set('end', this.#laps);
    while (this.#followed < sequence) await this.#db.get('end');
    this.#stopped.abort();
    await this.#db.close();
  }

  async #follow(): Promise<void> {
    const { signal } = this.#stopped;
    try {
      for await (const { sequence } of this.#db.changes({ keysOnly: true, signal })) this.#followed = sequence;
    } catch (error) {
      if (!signal.aborted) throw error;
    }
  }

  #key(): Key {
    return ['ring', this.#random(KEYS)];
  }

  #value(): unknown {
    return { at: this.#random(1000), text: 'x'.repeat(this.#random(800)) };
  }

  /** Objects that are no longer used: they must be collected, unless a leak is to keep them. */
  #forget(kind: Forgotten, ...things: object[]): void {
    for (const thing of things) this.#forgotten[kind].add(new WeakRef(thing));
    if (this.#leak === kind) this.#kept.push(...things);
  }

  async #write(): Promise<void> {
    const db = this.#db;
    for (let i = 0; i < TIMES; i++) {
      const batch = db.batch();
      for (let n = 0; n < 20; n++) batch.set(this.#key(), this.#value());
      const from = this.#random(KEYS);
      await Promise.all([
        batch.commit(),
        db.set(this.#key(), this.#value(), { durability: i === 0 ? 'strict' : 'relaxed' }),
        db.set(this.#key(), this.#value(), { expiresIn: 1 + this.#random(50) }),
        db.delete(this.#key()),
        db.update(['counter'], (count) => Number(count ?? 0) + 1),
        db.deleteRange({ gte: ['ring', from], lt: ['ring', from + 5] }),
        db.getMany([this.#key(), this.#key(), ['nothing']]),
      ]);
    }
  }

  /** Scans that are dropped after a step, left early, aborted, and used up. */
  async #iterate(): Promise<void> {
    const db = this.#db;
    for (let i = 0; i < TIMES; i++) {
      const forgotten = [db.entries({ prefix: ['ring'] }), db.keys({ reverse: true }), db.values()];
      await Promise.all(forgotten.map((scan) => scan.next()));
      this.#forget('iterators', ...forgotten);
      for await (const key of db.keys()) if (key !== undefined) break;
      const abort = new AbortController();
      const aborted = db.entries({ signal: abort.signal });
      await aborted.next();
      abort.abort();
      await aborted.next().catch(() => undefined);
    }
    await db.count({ prefix: ['ring'] });
    for await (const key of db.keys({ limit: 200 })) void key;
  }

  /** Snapshots that are dropped and closed, with scans of them. */
  async #hold(): Promise<void> {
    for (let i = 0; i < TIMES; i++) {
      const [forgotten, closed] = [this.#db.snapshot(), this.#db.snapshot()];
      await Promise.all([forgotten.entries().next(), closed.entries().next(), closed.get(this.#key())]);
      await closed.close();
      this.#forget('snapshots', forgotten);
    }
  }

  /** Followers that wait and are dropped, that are left early, and aborted. */
  async #watch(): Promise<void> {
    const db = this.#db;
    for (let i = 0; i < TIMES; i++) {
      const abort = new AbortController();
      const followers: ChangeIterator<Key, unknown>[] = [
        db.changes(),
        db.watch(this.#key()),
        db.watch({ prefix: ['ring'] }, { keysOnly: true }),
        db.changes({ signal: abort.signal }),
      ];
      const waiting = followers.map((follower) => follower.next().catch(() => undefined));
      this.#forget('followers', ...followers);
      await followers[1]?.return?.();
      abort.abort();
      await waiting[3];
    }
    await db.set(this.#key(), this.#value());
  }

  /** Live queries that are subscribed to and left. */
  async #look(): Promise<void> {
    for (let i = 0; i < TIMES; i++) {
      const live = this.#db.live({ prefix: ['ring'], limit: 5, as: 'keys' });
      await new Promise<void>((resolve, reject) => {
        const stop = live.subscribe((value) => {
          if (value === undefined) return;
          queueMicrotask(() => stop());
          resolve();
        }, reject);
      });
      this.#forget('queries', live);
    }
  }

  /** Transactions that commit, that throw, and that are in conflict. */
  async #transact(): Promise<void> {
    const db = this.#db;
    const count = (key: Key) =>
      db.transaction(async (tx) => {
        tx.set(key, Number((await tx.get(key)) ?? 0) + 1);
      });
    for (let i = 0; i < TIMES / 2; i++) {
      const thrown = db.transaction(async (tx) => {
        await tx.get(this.#key());
        for await (const key of tx.keys()) if (key !== undefined) throw new Error('left');
      });
      await Promise.all([count(['counter']), count(['counter']), count(['other']), thrown.catch(() => undefined)]);
    }
  }

  async #keepNotes(): Promise<void> {
    const notes = this.#notes;
    for (let i = 0; i < TIMES; i++) {
      const id = this.#random(NOTES);
      await notes.put({ id, title: `note ${this.#random(NOTES)}`, tags: [`tag ${id % 7}`, 'all'] });
      await notes.update(id, { tags: ['all'] });
      await notes.delete(this.#random(NOTES));
      for await (const note of notes.find('tags', 'all')) if (note.id >= 0) break;
      await notes.count('title');
    }
  }

  /** An export that is cancelled, a check, and a compaction. */
  async #maintain(): Promise<void> {
    const reader = this.#db.export().getReader();
    await reader.read();
    await reader.cancel();
    const { problems } = await this.#db.check();
    if (problems.length > 0) throw new Error(`The store is damaged: ${JSON.stringify(problems)}`);
    await this.#db.compact();
  }

  /** Opens other stores, leaves objects open in them, and closes them; returns the shortest time of opening. */
  async #openOthers(lap: number): Promise<number> {
    const opened: number[] = [];
    for (let i = 0; i < OPENS; i++) {
      const staysOpen = this.#leak === 'closing' && i < LEFT_OPEN;
      const name = staysOpen ? `open-${lap}-${i}` : `side-${(lap * OPENS + i) % SIDE_STORES}`;
      const start = performance.now();
      const db = await this.#place.open(name);
      opened.push(performance.now() - start);
      await db.set(i, this.#value());
      await Promise.all([db.entries().next(), db.snapshot().sequence]);
      // It ends with the store, by an error that nobody waits for.
      const ended = db
        .changes()
        .next()
        .catch(() => undefined);
      const unsubscribe = db.live(i).subscribe(() => undefined);
      const live = db.live({ as: 'count' });
      live.subscribe(
        () => undefined,
        () => undefined,
      );
      if (i % 2 === 0) unsubscribe();
      if (staysOpen) continue;
      await db.close();
      await ended;
      this.#forget('stores', db);
      if (i === 0) await this.#place.remove(name);
    }
    return Math.min(...opened);
  }

  /** The shortest times of calls, and of the control. */
  async #time(): Promise<{ control: number; get: number; set: number; scan: number }> {
    const of = async (call: () => Promise<unknown>): Promise<number> => {
      const rounds: number[] = [];
      for (let round = 0; round < ROUNDS_TIMED; round++) {
        const start = performance.now();
        for (let i = 0; i < CALLS_TIMED; i++) await call();
        rounds.push(performance.now() - start);
      }
      return Math.min(...rounds);
    };
    const control = await of(() => this.#place.echo(ECHOED));
    const get = await of(() => this.#db.get(this.#key()));
    const set = await of(() => this.#db.set(this.#key(), 1));
    const scan = await of(async () => {
      for await (const key of this.#db.keys({ limit: 50 })) void key;
    });
    return { control, get, set, scan };
  }

  async #count(): Promise<Record<string, number>> {
    let [stats, forgotten] = [await this.#db.stats(), this.#living()];
    for (let i = 0; i < COLLECTIONS_MAX && stats.scans + stats.snapshots + sumOf(forgotten) > 0; i++) {
      await this.#place.collect();
      [stats, forgotten] = [await this.#db.stats(), this.#living()];
    }
    const {
      scans: cursors,
      snapshots,
      memtable: { retainedBytes },
      disk: { obsoleteFiles, bytes: diskBytes },
      log: { segments: walSegments },
      levels,
    } = stats;
    const tables = levels.reduce((sum, level) => sum + level.tables, 0);
    const engine = { cursors, snapshots, retainedBytes, obsoleteFiles, walSegments, diskBytes, tables };
    return { ...engine, ...forgotten, ...(await this.#place.count()) };
  }

  /** How many of the objects that are no longer used are not collected. */
  #living(): Record<string, number> {
    return Object.fromEntries(FORGOTTEN.map((kind) => [`forgotten ${kind}`, livingOf(this.#forgotten[kind])]));
  }
}

/** How many are not collected; collected ones are removed from the set. */
function livingOf(references: Set<WeakRef<object>>): number {
  for (const reference of references) if (reference.deref() === undefined) references.delete(reference);
  return references.size;
}

function sumOf(counts: Record<string, number>): number {
  return Object.values(counts).reduce((sum, count) => sum + count, 0);
}
