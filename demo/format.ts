// Numbers and names as people read them.

export { formatBytes, formatCount, formatDuration, plural } from '../js/src/inspector/format.ts';

const regions = new Intl.DisplayNames('en', { type: 'region', fallback: 'code' });

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
