/** Numbers as people read them. */

const numbers = new Intl.NumberFormat('en');

/** `135,233` */
export function formatCount(count: number): string {
  return numbers.format(Math.round(count));
}

/** `one city`, `2 cities` */
export function plural(count: number, one: string, many: string): string {
  return `${formatCount(count)} ${count === 1 ? one : many}`;
}

/** `512 B`, `6.2 MB` */
export function formatBytes(bytes: number): string {
  if (bytes < 1000) return `${bytes} B`;
  const [unit, size]: [string, number] = bytes < 1e6 ? ['kB', 1e3] : bytes < 1e9 ? ['MB', 1e6] : ['GB', 1e9];
  const value = bytes / size;
  return `${value.toFixed(value < 10 ? 1 : 0)} ${unit}`;
}

/** `0.4 ms`, `38 ms`, `2.1 s`. The clock of a page steps by 0.1 ms, so nothing finer is claimed. */
export function formatDuration(ms: number): string {
  if (ms < 0.1) return 'under 0.1 ms';
  if (ms < 10) return `${ms.toFixed(1)} ms`;
  if (ms < 1000) return `${Math.round(ms)} ms`;
  return `${(ms / 1000).toFixed(1)} s`;
}
