// What encrypted.ts uses of `@journeyapps/wa-sqlite`, in terms of `wa-sqlite`: its own types replace global ones of that.

interface CipherModule {
  ccall(name: string, result: 'int', types: string[], values: (string | number)[]): number;
}

declare module '@journeyapps/wa-sqlite/dist/mc-wa-sqlite-async.mjs' {
  const createModule: (options: { locateFile(file: string): string }) => Promise<CipherModule>;
  // biome-ignore lint/style/noDefaultExport: the library has this one.
  export default createModule;
}

declare module '@journeyapps/wa-sqlite/src/sqlite-api.js' {
  type Original = ReturnType<typeof import('wa-sqlite').Factory>;
  export const SQLITE_ROW: number;
  export function Factory(module: CipherModule): Omit<Original, 'statements'> & {
    /** An unscoped statement lives after the loop. */
    statements(db: number, sql: string, options: { unscoped: boolean }): AsyncIterable<number>;
  };
}

declare module '@journeyapps/wa-sqlite/src/examples/IDBBatchAtomicVFS.js' {
  export const IDBBatchAtomicVFS: {
    create(name: string, module: CipherModule, options: { lockPolicy: 'exclusive' }): Promise<SQLiteVFS>;
  };
}
