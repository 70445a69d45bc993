/** The part of jstat that the bench uses. jstat brings no types. */

declare module 'jstat' {
  const jStat: {
    mean(figures: readonly number[]): number;
    /** The interval around a value by Student's t, which includes the true one in all but the share `alpha` of all cases. */
    tci(value: number, alpha: number, figures: readonly number[]): [low: number, high: number];
  };
  // biome-ignore lint/style/noDefaultExport: the library has this one.
  export default jStat;
}
