/**
 * Whether the holder of a claim is alive.
 *
 * Invariant: in doubt it is alive. If a claim is wrongly taken for a dead holder's, a store gets two writers. If a claim is wrongly
 * kept, the cost is a `VARVE_LOCKED` that names the file.
 *
 * There are four ways to know; a runtime may have none of them:
 *
 *     /proc/<pid>/stat    Linux: shows when the process started. This distinguishes a reused pid from its first owner, and a killed
 *                         process that nobody has waited for (a zombie) from a running one
 *     kill(pid, 0)        everywhere, but Deno asks for --allow-run; a pid that was reused looks alive
 *     a lock on the file  between Deno processes, with no permission: the system releases it when the holder ends
 *     the file's time     Linux: between containers, see pulse.ts
 *
 * A pid is compared only with pids of the same machine and of the same PID namespace, here called a *space*: the processes of another
 * container have pids of their own, which may be the same numbers. Linux numbers the spaces. Where the number of one of the two is
 * unknown, they count as the same. A process of the initial space, outside of all containers, does not touch its claim. So in another
 * space it is never taken for dead, like the process of another machine.
 */

import { readdirSync, readFileSync, readlinkSync, statSync, unlinkSync } from 'node:fs';
import { hostname } from 'node:os';
import * as process from 'node:process';
import { threadId } from 'node:worker_threads';
import { errnoOf } from './errno.ts';
import type { Watch } from './pulse.ts';

/** The number of the initial space, on every Linux. */
const INITIAL_SPACE = 0xeffffffc;
const HOST_CHARACTERS_MAX = 120;

/** The holder of a claim. */
export interface Holder {
  readonly pid: number;
  /** When the process started, in ticks of its system; 0 where that is unknown. */
  readonly started: number;
  /** The worker thread of the process; 0 for the main one. */
  readonly thread: number;
  /** The PID namespace that `pid` is of; 0 where that is unknown. */
  readonly space: number;
  /** The host name of the machine, in the form that a file name can contain; empty where it may not be read. */
  readonly host: string;
  /** Whether the claim's file is locked for as long as the holder runs. */
  readonly locksFile: boolean;
}

/** The file locks of Deno, which `node:fs` does not have. */
interface DenoFile {
  lockSync(exclusive: boolean): void;
  tryLockSync(exclusive: boolean): boolean;
  close(): void;
}

const deno = (globalThis as { Deno?: { openSync(path: string, options: object): DenoFile } }).Deno;

/** The caller. */
export function self(): Holder {
  const { pid } = process;
  const started = startOf(pid) || 0;
  // Deno would ask its user for each file of /proc, so the second is not read if the first was refused.
  const space = started === 0 ? 0 : spaceOrNone();
  return { pid, started, thread: threadId, space, host: hostOrNone(), locksFile: deno !== undefined };
}

/** Whether two holders of one machine are known to be in different spaces. */
export function isApart({ space }: Holder, other: Holder): boolean {
  return space !== 0 && other.space !== 0 && space !== other.space;
}

/** Whether a holder touches the file of its claim: in every known space but the initial one. */
export function isTouching({ space }: Holder): boolean {
  return space !== 0 && space !== INITIAL_SPACE;
}

/** Locks the file of the caller's own claim, where that is possible; closing the result releases the lock. */
export function lockFile(path: string): { close(): void } | undefined {
  const file = deno?.openSync(path, { read: true, write: true });
  file?.lockSync(true);
  return file;
}

/** Whether `holder`, whose claim is the file `path`, still runs; `me` is the caller, and `watch` what it has seen of touches. */
export function isAlive(holder: Holder, path: string, me: Holder, watch: Watch): boolean {
  if (holder.locksFile && deno !== undefined) return isLocked(path);
  if (holder.host !== '' && me.host !== '' && holder.host !== me.host) return true;
  if (isApart(holder, me)) return !isTouching(holder) || watch.isAlive(path);
  if (holder.pid === me.pid) return isThread(holder, path, me);
  const started = startOf(holder.pid);
  if (started !== undefined) return started !== 0 && (holder.started === 0 || holder.started === started);
  return answers(holder.pid);
}

/** A claim of a process with the caller's pid: another thread of it, or an earlier process that had this pid. */
function isThread(holder: Holder, path: string, me: Holder): boolean {
  if (holder.started !== me.started) return false;
  // When a thread was ended, its files were closed, and with them its claim.
  return isOpenHere(path);
}

/** Whether this process has the file open; true where that is unknown. */
function isOpenHere(path: string): boolean {
  try {
    const { ino, dev } = statSync(path);
    return readdirSync('/proc/self/fd').some((fd) => {
      try {
        const open = statSync(`/proc/self/fd/${fd}`);
        return open.ino === ino && open.dev === dev;
      } catch {
        return false;
      }
    });
  } catch (error) {
    return errnoOf(error) !== 'ENOENT' || errnoAt(error) !== path;
  }
}

function errnoAt(error: unknown): unknown {
  return (error as { path?: unknown }).path;
}

/** Whether a claim is locked; one that is not is removed. */
function isLocked(path: string): boolean {
  let file: DenoFile | undefined;
  try {
    file = deno?.openSync(path, { read: true, write: true });
    if (file?.tryLockSync(true) !== true) return true;
    // Removed while it is locked here. Its holder may be just about to lock it: then that holder finds its claim gone, and makes another.
    unlinkSync(path);
    return false;
  } catch (error) {
    return errnoOf(error) !== 'ENOENT';
  } finally {
    file?.close();
  }
}

/** When a process started: 0 when it has ended; undefined where that is unknown. */
function startOf(pid: number): number | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
    // The name is in parentheses and may contain anything; the state follows it, and the start is the 22nd field.
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    if (fields[0] === 'Z' || fields[0] === 'X') return 0;
    return Number(fields[19]) || undefined;
  } catch {
    return undefined;
  }
}

function answers(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch (error) {
    return errnoOf(error) !== 'ESRCH';
  }
}

function spaceOrNone(): number {
  try {
    return Number(/^pid:\[(\d+)\]$/.exec(readlinkSync('/proc/self/ns/pid'))?.[1] ?? 0);
  } catch {
    return 0;
  }
}

function hostOrNone(): string {
  try {
    return hostname()
      .replace(/[^\w-]/g, '-')
      .slice(0, HOST_CHARACTERS_MAX);
  } catch {
    return '';
  }
}
