/** The one VFS of wa-sqlite that the bench uses: the package's own types leave it out. */
declare module 'wa-sqlite/src/examples/AccessHandlePoolVFS.js' {
  export interface AccessHandlePoolVFS extends Omit<SQLiteVFS, 'name'> {}

  export class AccessHandlePoolVFS {
    /** Takes a folder of the origin private file system, for this pool alone. */
    constructor(directoryPath: string);
    /** The name under which it is registered. */
    get name(): string;
    /** Resolves when all files are open. */
    readonly isReady: Promise<void>;
    /** Closes all files. */
    close(): Promise<void>;
  }
}
