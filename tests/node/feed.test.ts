// The feed alone, over a model of the engine: whatever order messages arrive in, no follower misses a write or waits behind one.

import { expect, test } from 'vitest';
import { Feed, Reader } from '../../js/src/changes/feed.ts';
import { pageWanted } from '../../js/src/protocol/change-page.ts';
import { FeedModel } from './support/feed-model.ts';
import { Random } from './support/random.ts';

const STEPS = 300;
/** Some followers share one range. The others have more different ranges than are requested one by one. */
const [ALIKE, FOLLOWERS] = [5, 16];
const KEYS = 6;

const turnEnds = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

/** Follows a range from the beginning. */
class Follower {
  readonly seen: number[] = [];
  readonly start: number;
  readonly end: number;
  readonly reader = new Reader();
  /** Whether a step is under way. */
  isWaiting = false;
  readonly #feed: Feed;
  #position = 0;

  constructor(feed: Feed, start: number, end: number) {
    this.#feed = feed;
    this.start = start;
    this.end = end;
  }

  async step(): Promise<void> {
    if (this.isWaiting) return;
    this.isWaiting = true;
    const wanted = pageWanted(Uint8Array.of(this.start), Uint8Array.of(this.end), true, 64);
    const moved = await this.#feed.next(wanted, this.#position, this.reader);
    this.isWaiting = false;
    if (moved === undefined) return;
    expect(moved.isGap).toBe(false);
    this.#position = moved.position;
    this.seen.push(...moved.page.changes.map(({ sequence }) => sequence));
  }
}

/** Sequences of a log that a follower should have seen. */
function wantedOf({ log }: FeedModel, { start, end }: Follower): number[] {
  return log.flatMap((key, i) => (key >= start && key < end ? [i + 1] : []));
}

/** One thing that happens. */
function happen(model: FeedModel, followers: readonly Follower[], random: Random): void {
  const roll = random.below(100);
  if (roll < 12) model.write(random.below(KEYS));
  else if (roll < 24) model.commit();
  else if (roll < 26) model.revive();
  else if (roll < 28) model.succeed();
  else if (roll < 29) model.giveUp();
  else if (roll < 31) model.canLog = !model.canLog;
  else if (roll < 32) random.pick(followers).reader.end();
  else if (roll < 60) void random.pick(followers).step();
  else {
    const { arrivals } = model;
    if (arrivals.length > 0) random.pick(arrivals)();
  }
}

test('followers get every change in random histories of writes, commits, refusals and leaders', async () => {
  for (let seed = 1; seed <= 150; seed++) {
    const random = new Random(seed);
    const model = new FeedModel();
    const feed = new Feed(model.client);
    const followers = Array.from({ length: FOLLOWERS }, (_, i) =>
      i < ALIKE ? new Follower(feed, 0, 1) : new Follower(feed, i % KEYS, (i % KEYS) + 1 + random.below(KEYS)),
    );
    for (let i = 0; i < STEPS; i++) {
      happen(model, followers, random);
      await turnEnds();
    }
    model.canLog = true;
    model.write(0);
    model.commit();
    const { requests } = model;
    for (;;) {
      await turnEnds();
      for (const follower of followers) void follower.step();
      await turnEnds();
      const { arrivals } = model;
      if (arrivals.length === 0) break;
      random.pick(arrivals)();
      // A follower that gets nothing new must not send requests for ever.
      expect(model.requests - requests, `seed ${seed}`).toBeLessThan(2000);
    }
    for (const follower of followers) {
      if (follower.reader.isOver) continue;
      expect(follower.seen, `seed ${seed}`).toEqual(wantedOf(model, follower));
      expect(follower.isWaiting).toBe(true);
    }
  }
});

test('a follower that leaves while nothing is written uses no memory, and one that waits is woken once', async () => {
  const model = new FeedModel();
  const feed = new Feed(model.client);
  const wanted = pageWanted(new Uint8Array(0), new Uint8Array(0), true, 64);
  const reader = new Reader();
  const left = feed.next(wanted, 0, reader);
  const drained = async (): Promise<void> => {
    for (await turnEnds(); model.arrivals.length > 0; await turnEnds()) model.arrivals[0]?.();
  };
  await drained();
  reader.end();
  expect(await left).toBeUndefined();
  const waiting = feed.next(wanted, 0, new Reader());
  await drained();
  const { requests } = model;
  model.write(1);
  model.commit();
  await drained();
  expect((await waiting)?.position).toBe(1);
  // One page; the wait was already requested.
  expect(model.requests - requests).toBe(1);
});
