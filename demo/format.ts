// Numbers and names as people read them.

const numbers = new Intl.NumberFormat('en');
const regions = new Intl.DisplayNames('en', { type: 'region', fallback: 'code' });

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

/** How long ago a time in milliseconds since 1970 was; undefined is never. */
export function formatAgo(atMs: number | undefined, nowMs: number): string {
  if (atMs === undefined) return 'not yet';
  const seconds = Math.max(0, Math.round((nowMs - atMs) / 1000));
  if (seconds < 2) return 'just now';
  if (seconds < 120) return `${seconds} s ago`;
  return seconds < 7200 ? `${Math.round(seconds / 60)} min ago` : `${Math.round(seconds / 3600)} h ago`;
}

/** The English name of a country's code. */
export function countryName(code: string): string {
  try {
    return regions.of(code) ?? code;
  } catch {
    return code;
  }
}

/** `47.37 N, 8.55 E` */
export function formatPlace(latitude: number, longitude: number): string {
  const north = `${Math.abs(latitude).toFixed(2)}\u00b0 ${latitude < 0 ? 'S' : 'N'}`;
  return `${north}, ${Math.abs(longitude).toFixed(2)}\u00b0 ${longitude < 0 ? 'W' : 'E'}`;
}

const FEATURES = new Map([
  ['PPLC', 'National capital'],
  ['PPLA', 'Regional capital'],
  ['PPLX', 'Part of a city'],
  ['PPLG', 'Seat of government'],
  ['PPLQ', 'Abandoned place'],
  ['PPLH', 'Historical place'],
  ['PPLW', 'Destroyed place'],
]);

/** The meaning of a GeoNames feature code. */
export function featureName(code: string): string {
  return FEATURES.get(code) ?? (/^PPLA\d$/.test(code) ? 'Local seat' : 'Town or village');
}

/** A key as one would write it: `['name', 'zurich', -341730, 2657896]`. */
export function formatKey(key: unknown): string {
  if (Array.isArray(key)) return `[${key.map(formatKey).join(', ')}]`;
  return typeof key === 'string' ? `'${key}'` : String(key);
}
