/**
 * The lock of a store: an empty file in its directory, whose name identifies the holder.
 *
 *     lock.<pid>.<start of the process>.<thread>.<locks file: 0 or 1>.<PID namespace>.<nonce>.<host>
 *
 * To take it, an opener looks for claims, makes its own (O_EXCL), and looks again. If it finds a claim of another living holder, it
 * removes its own and tries again later. Of two openers that claim at once, at least one sees the other, because each looks after it
 * has made its own claim: so two never hold a store. Claims of dead holders are removed. No name is ever used twice, so removing a
 * dead holder's claim can never remove a living one's. A single lock file that is taken over from a dead owner has that race.
 * A name that begins with `lock.` in another form is a later version's claim, whose holder counts as alive.
 * The pid of a holder in another container says nothing: its claim is watched for some seconds (pulse.ts).
 *
 * Invariant: held from before the first slot is opened until after the last one is closed. The claim's file stays open
 * meanwhile (see liveness.ts). In a container it is touched meanwhile. Everywhere the holder checks again and again that the claim is still
 * there, so that it learns of a loss although it writes nothing.
 */

import { constants } from 'node:fs';
import { join } from 'node:path';
import { VarveError } from '../../errors.ts';
import { untilAborted } from '../../runtime/until-aborted.ts';
import { delay, unref } from '../../runtime/wait.ts';
import type { LockOptions } from '../adapter.ts';
import { type FileCalls, makeDirectory, namesIn, removeFile } from './calls.ts';
import { errnoOf } from './errno.ts';
import { type Holder, isAlive, isApart, isTouching, lockFile, self } from './liveness.ts';
import { isClaimed, lostPlace, type Place, placeOf } from './place.ts';
import { pulseOf, SETTLE_MS, TOUCH_MS, Watch } from './pulse.ts';

const PAUSE_MS_MAX = 50;
/** How often an opener that met another one at the same time tries again, even if its `lockTimeout` is shorter. */
const MEETINGS_MAX = 10;
/** How often a holder that need not touch its claim checks it. */
const LOOK_MS = 5000;
const PREFIX = 'lock.';
const NAME = /^lock\.(\d+)\.(\d+)\.(\d+)\.([01])\.(\d+)\.[0-9a-f]+\.([\w%-]*)$/;

/** A held lock. */
export interface Claim {
  /** The directory that it is a claim on. */
  readonly place: Place;
  /** Called with `lostPlace` when the claim is gone. Set by the holder. */
  onLost: (cause: unknown) => void;
  /** Releases the lock for the next holder. */
  release(): void;
}

/** A claim that was found. */
interface Found {
  /** Undefined if the name is of an unknown form. */
  readonly holder: Holder | undefined;
  readonly path: string;
}

/**
 * Takes the lock of the store in `directory`, making the directory where there is none.
 * @throws `VARVE_LOCKED` when another holder keeps it for longer than `lockTimeout`, the signal's `reason` when it aborts, the error of a
 * file call, such as `ENOENT` where `directory` is a symbolic link to nothing.
 */
export async function claim(
  calls: FileCalls,
  store: string,
  directory: string,
  { lockTimeout, signal }: LockOptions,
): Promise<Claim> {
  const deadline = performance.now() + lockTimeout;
  const me = self();
  const watch = new Watch();
  for (let pause = 1, meetings = 0, gone = 0; ; pause = Math.min(PAUSE_MS_MAX, pause * 2)) {
    signal?.throwIfAborted();
    let other = findOther(calls, directory, me, watch);
    if (other === undefined) {
      const made = make(calls, directory, me, gone++ < MEETINGS_MAX);
      if (made !== undefined) {
        gone = 0;
        const { isHeld, found } = lookAgain(calls, directory, me, watch, made);
        if (isHeld) {
          if (watch.mustSettle) await delay(SETTLE_MS);
          return made;
        }
        other = found;
      }
      if (++meetings <= MEETINGS_MAX) {
        await delay(Math.random() * pause * 4);
        continue;
      }
    }
    if (other !== undefined && performance.now() >= deadline) throw locked(store, other, me);
    await untilAborted(delay(pause), signal).catch(() => undefined);
  }
}

/** Makes a claim; undefined where the directory may be gone and is, because the store was deleted at the same time. */
function make(
  calls: FileCalls,
  directory: string,
  me: Holder,
  mayBeGone: boolean,
): (Claim & { name: string }) | undefined {
  makeDirectory(calls, directory);
  const name = nameOf(me);
  const path = join(directory, name);
  let file: number | undefined;
  let lock: { close(): void } | undefined;
  let timer: ReturnType<typeof setInterval> | undefined;
  const release = (): void => {
    clearInterval(timer);
    try {
      removeFile(calls, path);
    } finally {
      lock?.close();
      if (file !== undefined) calls.closeSync(file);
      file = undefined;
      lock = undefined;
    }
  };
  try {
    file = calls.openSync(path, constants.O_RDWR | constants.O_CREAT | constants.O_EXCL, 0o666);
    lock = lockFile(path);
    const made = { name, place: placeOf(path, file, isTouching(me)), onLost: () => undefined, release };
    timer = watching(made);
    return made;
  } catch (error) {
    release();
    if (mayBeGone && errnoOf(error) === 'ENOENT') return undefined;
    throw error;
  }
}

/** Looks for other claims behind one that was just made, which is released unless there are none. */
function lookAgain(
  calls: FileCalls,
  directory: string,
  me: Holder,
  watch: Watch,
  made: Claim & { name: string },
): { readonly isHeld: boolean; readonly found: Found | undefined } {
  let isHeld = false;
  try {
    const found = findOther(calls, directory, me, watch, made.name);
    isHeld = found === undefined && namesIn(directory).includes(made.name);
    return { isHeld, found };
  } finally {
    // Also if the directory cannot be read, because no more files may be open: the claim that stayed then locked its own process out.
    if (!isHeld) made.release();
  }
}

/** Touches a claim and checks it, again and again until it is gone. */
function watching(claim: Claim): ReturnType<typeof setInterval> {
  const { place } = claim;
  const pulse = pulseOf(place);
  const look = (): void => {
    try {
      pulse();
      if (!isClaimed(place)) throw lostPlace(place);
    } catch (cause) {
      clearInterval(timer);
      claim.onLost(cause);
    }
  };
  const timer = setInterval(look, place.isTouched ? TOUCH_MS : LOOK_MS);
  unref(timer);
  return timer;
}

/** Whether a file of this name is a claim. */
export function isClaim(name: string): boolean {
  return NAME.test(name);
}

/** Finds a claim other than `own` whose holder is alive; removes the claims of dead holders. */
function findOther(calls: FileCalls, directory: string, me: Holder, watch: Watch, own?: string): Found | undefined {
  let other: Found | undefined;
  for (const name of namesIn(directory)) {
    if (name === own || !name.startsWith(PREFIX)) continue;
    const holder = holderOf(name);
    const path = join(directory, name);
    if (holder === undefined || isAlive(holder, path, me, watch)) other ??= { holder, path };
    else removeFile(calls, path);
  }
  return other;
}

function nameOf({ pid, started, thread, locksFile, space, host }: Holder): string {
  const nonce = Array.from(crypto.getRandomValues(new Uint8Array(8)), (byte) => byte.toString(16).padStart(2, '0'));
  return `lock.${pid}.${started}.${thread}.${locksFile ? 1 : 0}.${space}.${nonce.join('')}.${host}`;
}

function holderOf(name: string): Holder | undefined {
  const match = NAME.exec(name);
  if (match === null) return undefined;
  const [, pid, started, thread, locks, space, host = ''] = match;
  return {
    pid: Number(pid),
    started: Number(started),
    thread: Number(thread),
    space: Number(space),
    host,
    locksFile: locks === '1',
  };
}

function locked(store: string, { holder, path }: Found, me: Holder): VarveError {
  return new VarveError(
    'VARVE_LOCKED',
    `${textOf(holder, me)} has the store "${store}" open. Close it there, or wait longer. If it no longer runs, remove ${path}.`,
  );
}

/** Names a holder for the error that `me` gets. */
function textOf(holder: Holder | undefined, me: Holder): string {
  if (holder === undefined) return 'A newer version of varve, or another program, probably';
  const { pid, thread, host } = holder;
  if (host !== '' && host !== me.host) return `Process ${pid} of the machine ${host}`;
  if (isApart(holder, me)) return `Process ${pid} of another PID namespace (a container, or its host)`;
  return pid === me.pid ? `This process (${pid}, thread ${thread})` : `Process ${pid}`;
}
