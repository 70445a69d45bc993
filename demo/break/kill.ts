// Kill the worker: the engine's thread is ended in the middle of writing, as a crash would end it.
// Invariant: the page makes the worker itself (the option `worker`), so that it can end it; the store gets no notice of that.

import { deleteStore, open } from 'varve';
import { formatCount, formatDuration, plural } from '../format.ts';
import { AckStrip } from './ack-strip.ts';
import { type Entries, Ledger } from './ledger.ts';
import type { Timeline } from './timeline.ts';

const STORE = 'break-kill';
const BEFORE = 600;
const AFTER = 600;
const IN_FLIGHT = 8;
/** Long, because the machine may be busy; no other page has this store. */
const WAIT_MS = 60_000;
const VALUE_BYTES = 100;

/** Writes, kills, continues, and checks that everything acknowledged is there. */
export async function kill(timeline: Timeline): Promise<void> {
  const workers: Worker[] = [];
  const spawn = (): Worker => {
    const worker = new Worker('./varve/engine-worker.js', { type: 'module', name: `break-kill ${workers.length + 1}` });
    workers.push(worker);
    if (workers.length > 1)
      timeline.add('done', 'Varve noticed that the lock of the worker was free, and started another worker.');
    return worker;
  };
  await deleteStore(STORE, { lockTimeout: WAIT_MS });
  const db: Entries = await open(STORE, { worker: spawn, lockTimeout: WAIT_MS });
  const ledger = new Ledger(VALUE_BYTES);
  const strip = new AckStrip();
  try {
    timeline.add(
      'done',
      `Opened a new store, "${STORE}", in ${db.storage.kind}. Its engine runs in a worker of this tab.`,
    );
    const { killed, pauseMs, inFlight } = await writeThrough(db, ledger, strip, () => {
      workers.at(-1)?.terminate();
      timeline.add('broken', 'The worker was ended in the middle of the writes. The store got no notice.');
    });
    const calls = plural(inFlight, 'call was', 'calls were');
    timeline.add(
      'reported',
      `No call failed. ${calls} under way. For ${formatDuration(pauseMs)} there was no answer, then the writes continued.`,
    );
    await tellRecovery(timeline);
    const { sharing } = await db.stats();
    timeline.add('reported', `${sharing?.leads ? 'This tab leads again' : 'Another tab leads now'}.`);
    const { kept, missing, extra } = await ledger.audit(db);
    strip.draw(killed);
    if (missing.length > 0 || extra.length > 0) {
      timeline.add(
        'wrong',
        `${missing.length} acknowledged writes are missing, and ${extra.length} entries are there that nothing wrote.`,
      );
    } else {
      timeline.add(
        'verified',
        `All ${formatCount(kept)} acknowledged writes are there with their right values, and nothing else.`,
      );
    }
  } finally {
    await db.close();
  }
}

/** Shows what the new engine found. A second handle of this page gets that from the leader. */
async function tellRecovery(timeline: Timeline): Promise<void> {
  const second = await open(STORE, { lockTimeout: WAIT_MS });
  const { state, records, recordsDropped } = second.recovery;
  await second.close();
  const dropped =
    recordsDropped === 0 ? '' : `, ${plural(recordsDropped, 'record', 'records')} behind a torn one dropped`;
  const words =
    state === 'clean' ? 'a sealed log' : `${plural(records, 'record', 'records')} of the log replayed${dropped}`;
  timeline.add('reported', `Recovery found the store "${state}": ${words}.`);
}

interface Written {
  readonly killed: number;
  /** The longest time without an answer, from the kill on. */
  readonly pauseMs: number;
  readonly inFlight: number;
}

/** Writes entry by entry, several at a time, and kills in the middle. */
async function writeThrough(db: Entries, ledger: Ledger, strip: AckStrip, end: () => void): Promise<Written> {
  let next = 0;
  let inFlight = 0;
  let killedMs = 0;
  let lastMs = 0;
  let pauseMs = 0;
  let waiting = 0;
  const writer = async (): Promise<void> => {
    while (next < BEFORE + AFTER) {
      const key = next++;
      if (key === BEFORE) {
        waiting = inFlight;
        killedMs = performance.now();
        end();
      }
      inFlight += 1;
      await db.set(key, ledger.value(key));
      inFlight -= 1;
      ledger.note(key);
      const nowMs = performance.now();
      strip.add(nowMs);
      // Some answers had been sent before the kill: the pause comes after them.
      if (killedMs > 0) pauseMs = Math.max(pauseMs, nowMs - Math.max(lastMs, killedMs));
      lastMs = nowMs;
    }
  };
  await Promise.all(Array.from({ length: IN_FLIGHT }, writer));
  return { killed: killedMs, pauseMs, inFlight: waiting };
}
