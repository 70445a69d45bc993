// The judge of a soak: whether the counts stay flat, lap after lap.
//
//     laps    | warm-up |  early  |         |  late   |      of counts, which have to rise first
//             |  early  |         |         |  late   |      of times, which are longest at first
//
// Windows of the same run are compared by their medians, with generous margins: one disturbed lap has no effect, and there are no
// absolute limits in seconds or bytes. Times are multiples of the time of an echo in the same lap, because a machine that becomes busy
// slows both.

/** The counts of one lap. */
export interface Lap {
  /** Bytes, handles and things that are open, after garbage was collected, by name. */
  readonly counts: Readonly<Record<string, number>>;
  /** The times of calls, as multiples of an echo. */
  readonly times: Readonly<Record<string, number>>;
}

/** Fewer laps show nothing. */
export const LAPS_MIN = 12;

/** How much more the late window may have: a share of the early window, plus this amount. */
interface Margin {
  readonly share: number;
  readonly more: number;
}

const KIB = 1024;
const COUNT: Margin = { share: 0.25, more: 3 };
const TIME: Margin = { share: 3, more: 0.05 };
const MARGINS: Readonly<Record<string, Margin>> = {
  heapBytes: { share: 0.1, more: 384 * KIB },
  // It reaches its maximum in two or three steps of 1.3 MiB, each at a flush or a merge, and never shrinks.
  wasmBytes: { share: 0.1, more: 4096 * KIB },
  // The system may reclaim pages at any time.
  processBytes: { share: 0.3, more: 48 * 1024 * KIB },
  // Tables come and go with merges.
  diskBytes: { share: 1, more: 8 * 1024 * KIB },
  tables: { share: 0.5, more: 12 },
  walSegments: { share: 0.5, more: 4 },
};

/** The counts in which a soak is not flat, in words; empty if it is flat. */
export function growthOf(laps: readonly Lap[]): string[] {
  if (laps.length < LAPS_MIN) throw new Error(`${laps.length} laps are too few to tell.`);
  const quarter = Math.floor(laps.length / 4);
  const late = laps.slice(-quarter);
  const grown = (kind: keyof Lap, early: readonly Lap[], marginOf: (name: string) => Margin): string[] =>
    Object.keys(laps[0]?.[kind] ?? {}).flatMap((name) => {
      const [before, after] = [early, late].map((part) => median(part.map((lap) => lap[kind][name] ?? 0)));
      const { share, more } = marginOf(name);
      const isFlat = (after ?? 0) <= (before ?? 0) * (1 + share) + more;
      return isFlat ? [] : [`${name} of ${kind}: from ${round(before)} to ${round(after)}`];
    });
  return [
    ...grown('counts', laps.slice(quarter, 2 * quarter), (name) => MARGINS[name] ?? COUNT),
    ...grown('times', laps.slice(0, quarter), () => TIME),
  ];
}

/** The median. */
function median(numbers: readonly number[]): number {
  const sorted = [...numbers].sort((a, b) => a - b);
  return sorted[Math.floor(sorted.length / 2)] ?? 0;
}

/** The counts at the end, in words. */
export function lastOf(laps: readonly Lap[]): string {
  const { counts = {}, times = {} } = laps.at(-1) ?? {};
  return [...Object.entries(counts), ...Object.entries(times)]
    .map(([name, value]) => `${name} ${round(value)}`)
    .join(', ');
}

function round(value = 0): number {
  return Math.round(value * 100) / 100;
}
