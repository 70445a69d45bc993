/**
 * The IndexedDB database of one store: how it is made, and its connection.
 *
 *     journal   [epoch, number] -> bytes    the rows of commits
 *     chunks    [slot, index]   -> bytes
 *
 * Invariant: its version is the format's. It does not change while a format lasts, so no opening has to wait for another connection.
 * A later format raises it: code that knows only the former one gets a `VersionError` then, and reports `VARVE_VERSION`. A connection
 * that the browser ends, or that blocks a deletion, is closed at once, and the next code that needs it opens a new one. If the database
 * is gone by then, no new one is created in its place.
 */

import { type DBSchema, type IDBPDatabase, openDB } from 'idb';
import { VarveError } from '../../errors.ts';
import { nameOf } from '../opfs-directory.ts';
import { Unavailable } from '../unavailable.ts';
import { databaseName } from './names.ts';

const VERSION = 1;

/** The object stores of the database. */
interface StoreSchema extends DBSchema {
  journal: { key: [number, number]; value: Uint8Array<ArrayBuffer> };
  chunks: { key: [number, number]; value: Uint8Array<ArrayBuffer> };
}

/** An open connection. */
export type StoreDatabase = IDBPDatabase<StoreSchema>;

/** IndexedDB is unavailable here; the message gives the reason. */
class IndexedDbUnavailable extends Unavailable {
  constructor(message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = 'IndexedDbUnavailable';
  }
}

/** The database does not exist, or no longer exists. */
export class DatabaseMissing extends Error {}

/** Opens the database of a store. `onLost` is called when the connection must no longer be used. */
export async function openDatabase(
  name: string,
  { create, onLost }: { create: boolean; onLost: () => void },
): Promise<StoreDatabase> {
  if (typeof globalThis.indexedDB === 'undefined') {
    throw new IndexedDbUnavailable('This context has no IndexedDB.');
  }
  let isMissing = false;
  let connection: StoreDatabase | undefined;
  try {
    connection = await openDB<StoreSchema>(databaseName(name), VERSION, {
      upgrade(database, _old, _new, transaction) {
        if (!create) {
          isMissing = true;
          transaction.done.catch(() => undefined);
          transaction.abort();
          return;
        }
        database.createObjectStore('journal');
        database.createObjectStore('chunks');
      },
      // Somebody is deleting the database, and must not have to wait for this connection.
      blocking() {
        connection?.close();
        onLost();
      },
      terminated: onLost,
    });
    return connection;
  } catch (cause) {
    if (isMissing) throw new DatabaseMissing(`There is no database of the store "${name}".`);
    const why = nameOf(cause);
    if (why === 'QuotaExceededError') {
      throw new VarveError('VARVE_STORAGE_FULL', 'There is no room to open the store. Free space and open it again.', {
        cause,
      });
    }
    if (why === 'VersionError') {
      throw new VarveError('VARVE_VERSION', 'A newer version of varve wrote this store.', { cause });
    }
    throw new IndexedDbUnavailable(`The browser refused to open an IndexedDB database (${why}).`, { cause });
  }
}
