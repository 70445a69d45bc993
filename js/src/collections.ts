/**
 * The package `varve/collections`: documents with typed secondary indexes, over any store of `varve` or `varve/inline`, or a view of one.
 *
 * Invariant: it contains no engine. It uses only the public API of a store, and two internal parts of that API: values that are encoded
 * already, and the statement of which keys are derived. A document and its index entries are written in one batch or one transaction;
 * they never disagree, except while a mark set by an import or an upgrade reports it.
 */

import { Layout } from './collections/definition.ts';
import { Readiness } from './collections/readiness.ts';
import { StoreCollection } from './collections/store-collection.ts';
import type {
  Collection,
  Definition,
  DocumentStore,
  Indexes,
  KeyOf,
  KeyProperty,
  NewDocument,
  ValuesOf,
} from './collections/types.ts';
import type { Key } from './types.ts';

export type * from './collections/types.ts';
export { uuid7 } from './collections/uuid7.ts';
export { VarveError, type VarveErrorCode } from './errors.ts';
export type { Progress } from './types.ts';

/**
 * Creates a collection of documents of the type `T`. It is called in two steps, so that the other types are inferred from the
 * definition. The call takes no time: the indexes are checked and built at the first use, or by `ready()`. All keys of the collection
 * in the store begin with its name: `[name, 'doc', key]` is a document. In a view of a store, `db.at(prefix)`, they are keys of the view.
 * The store or view must have no key codec, and its value codec must return the same value that it was given, as the default codec
 * does.
 *
 * Throws `VARVE_INVALID_ARGUMENT` for a definition that makes no sense.
 *
 * @example
 * interface Note { id: string; title: string; tags: string[]; folder: string; edited: Date }
 *
 * const notes = collection<Note>()(db, 'notes', {
 *   key: 'id',
 *   newKey: uuid7,
 *   indexes: {
 *     edited: 'edited',
 *     tags: { of: 'tags', multi: true },
 *     title: { of: (note) => note.title.toLowerCase(), unique: true },
 *     byFolder: ['folder', 'edited'],
 *   },
 * });
 * const id = await notes.insert({ title: 'Silt', tags: ['lake'], folder: 'work', edited: new Date() });
 * for await (const note of notes.find('byFolder', { prefix: ['work'], reverse: true, limit: 20 })) console.log(note.title);
 */
export function collection<T extends object>(): <
  const P extends KeyProperty<T> | ((document: T) => Key),
  // Without a default: with one, functions in it would not get the type of their document.
  const I extends Indexes<T>,
  G extends (() => KeyOf<T, P>) | undefined = undefined,
>(
  db: DocumentStore,
  name: string,
  definition: Definition<T, P, I, G>,
) => Collection<T, KeyOf<T, P>, ValuesOf<T, I>, NewDocument<T, P, G>> {
  return (db, name, definition) => {
    const layout = new Layout(name, definition as ConstructorParameters<typeof Layout>[1], db);
    // The implementation does not know the types of documents and values; callers see these types.
    return new StoreCollection(db, new Readiness(db, layout)) as never;
  };
}
