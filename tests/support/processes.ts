// Processes of a browser, as Linux reports them.

import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';

interface Process {
  readonly id: number;
  readonly group: number;
  readonly command: string;
}

function processes(): Process[] {
  const lines = execFileSync('ps', ['-A', '-o', 'pid=,pgid=,args='], { encoding: 'utf8' }).trim().split('\n');
  return lines.map((line) => {
    const [id, group, ...command] = line.trim().split(/\s+/);
    return { id: Number(id), group: Number(group), command: command.join(' ') };
  });
}

/** The processes of a group whose command has a word in it. */
export function groupOf(leader: number, word: string): number[] {
  return processes().flatMap(({ id, group, command }) => (group === leader && command.includes(word) ? [id] : []));
}

/** Whether a process has not ended. */
export function lives(id: number): boolean {
  try {
    // The name, in parentheses, may have spaces.
    const stat = readFileSync(`/proc/${id}/stat`, 'utf8');
    // An ended process stays as a zombie until its parent has noticed.
    return stat.charAt(stat.lastIndexOf(')') + 2) !== 'Z';
  } catch {
    return false;
  }
}

/** How much memory a process has, in KiB. */
export function memoryOf(id: number): number {
  return Number(/^VmRSS:\s*(\d+)/m.exec(readFileSync(`/proc/${id}/status`, 'utf8'))?.[1] ?? 0);
}

const GROWTH_KIB = 128 * 1024;

/**
 * Finds the process of a page among a group's processes with a word in their command. No browser reports it. So the page takes
 * memory, and the process that grows is its own. Memory is better than time here: the other processes do not take it meanwhile.
 * @param grow runs this in the page
 */
export async function processOf(
  leader: number,
  word: string,
  grow: (run: (bytes: number) => void, bytes: number) => Promise<unknown>,
): Promise<number> {
  const before = groupOf(leader, word).map((id) => ({ id, memory: memoryOf(id) }));
  await grow((bytes) => {
    Object.assign(globalThis, { ballast: new Uint8Array(bytes).fill(1) });
  }, GROWTH_KIB * 1024);
  const grown = before.filter(({ id, memory }) => memoryOf(id) - memory > GROWTH_KIB / 2);
  const [only] = grown;
  if (only === undefined || grown.length > 1) throw new Error(`${grown.length} processes may be that of the page.`);
  return only.id;
}
