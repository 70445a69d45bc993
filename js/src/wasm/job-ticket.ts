/** The engine's description of a job. Invariant: it refers to nothing of the engine itself, because declarations of workers use it. */

/** A flush or compaction that waits to be done. */
export interface JobTicket {
  readonly id: number;
  readonly kind: 'flush' | 'compaction';
  /** It frees as much space as it uses: on a full storage it may use the reserved space. */
  readonly givesRoom: boolean;
  /** Everything that the job needs besides its input tables; sent to the compactor unchanged. */
  readonly spec: Uint8Array<ArrayBuffer>;
  /** How large one output may get, in bytes. */
  readonly bytesHint: number;
}
