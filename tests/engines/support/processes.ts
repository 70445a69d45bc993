// Processes of a browser, as Linux tells them.

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

/** How much processor time a process has taken so far, in the system's ticks. */
export function ticksOf(id: number): number {
  const stat = readFileSync(`/proc/${id}/stat`, 'utf8');
  // The name, in parentheses, may have spaces; user and system time are the 12th and 13th field after it.
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  return Number(fields[11]) + Number(fields[12]);
}
