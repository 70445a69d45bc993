/** What the engine tells of a job. Invariant: this names nothing of the engine itself, for the declarations of the workers reach it. */

/** A flush or compaction that waits to be done. */
export interface JobTicket {
  readonly id: number;
  readonly kind: 'flush' | 'compaction';
  /** It lets go of as much room as it takes: on a full storage it may have what is set aside. */
  readonly givesRoom: boolean;
  /** All that the job needs besides its input tables; goes to the compactor as it is. */
  readonly spec: Uint8Array<ArrayBuffer>;
  /** How large one output may get, in bytes. */
  readonly bytesHint: number;
}
