/** The one VFS of wa-sqlite that the bench uses: the package's own types leave it out. */
declare module 'wa-sqlite/src/examples/AccessHandlePoolVFS.js' {
  export interface AccessHandlePoolVFS extends Omit<SQLiteVFS, 'name'> {}

  export class AccessHandlePoolVFS {
    /** Takes a folder of the origin private file system, for this pool alone. */
    constructor(directoryPath: string);
    get name(): string;
    readonly isReady: Promise<void>;
    close(): Promise<void>;
  }
}
