/** The one VFS of wa-sqlite that the bench uses: the package's own types leave it out. */
declare module 'wa-sqlite/src/examples/AccessHandlePoolVFS.js' {
  interface AccessHandlePool extends SQLiteVFS {
    /** Resolves when all files are open. */
    readonly isReady: Promise<void>;
    /** Closes all files. */
    close(): Promise<void>;
  }

  /** Takes a folder of the origin private file system, for this pool alone. */
  export const AccessHandlePoolVFS: new (directoryPath: string) => AccessHandlePool;
}
