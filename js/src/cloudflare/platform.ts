/**
 * The part of the platform's API that is used here, as structural types. The objects of workerd match them, and so do the
 * stand-ins in tests.
 *
 * Invariant: types only. The declarations of the package depend on no version of the platform's types.
 */

/** A value of a row or a binding. */
export type SqlValue = ArrayBuffer | string | number | null;

/** The rows that a statement returned, and the row counts for which it is billed. */
export interface SqlCursor extends Iterable<Record<string, SqlValue>> {
  toArray(): Record<string, SqlValue>[];
  readonly rowsRead: number;
  readonly rowsWritten: number;
}

/** `ctx.storage.sql`. */
export interface SqlStorage {
  // biome-ignore lint/suspicious/noExplicitAny: the platform types bindings as any[], and narrower would not take it.
  exec(query: string, ...bindings: any[]): SqlCursor;
  readonly databaseSize: number;
}

/** `ctx.storage` of a class with SQLite-backed storage. */
export interface ObjectStorage {
  readonly sql: SqlStorage;
  getAlarm(): Promise<number | null>;
  setAlarm(scheduledTime: number | Date): Promise<void>;
}

/** `ctx`: the state that a Durable Object is constructed with. */
export interface ObjectContext {
  readonly id: { toString(): string };
  readonly storage: ObjectStorage;
  blockConcurrencyWhile<T>(callback: () => Promise<T>): Promise<T>;
  abort(reason?: string): void;
}

/** A binding of a class of Durable Objects: `env.NOTES`. */
export interface ObjectNamespace<Id = unknown> {
  idFromName(name: string): Id;
  get(id: Id): object;
}
