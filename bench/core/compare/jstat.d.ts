/** The part of jstat that the bench uses: Student's t distribution. jstat brings no types. */

declare module 'jstat' {
  const jStat: {
    mean(figures: readonly number[]): number;
    /** `isSample`: divided by n - 1. */
    variance(figures: readonly number[], isSample: boolean): number;
    readonly studentt: {
      /** The share of the distribution below `x`, with `freedom` degrees of freedom. */
      cdf(x: number, freedom: number): number;
      /** The x that this share of the distribution lies below. */
      inv(share: number, freedom: number): number;
    };
  };
  // biome-ignore lint/style/noDefaultExport: the library has this one.
  export default jStat;
}
