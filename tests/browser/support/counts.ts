// Shared by the page of the soak and its workers.

/** The channel on which workers are asked for their counts, and answer. */
export const COUNTS = 'counts';
export const COUNT = 'count';
