/** The documents of a server: an index finds those of one team, as a scan of all of them does. */

import type { Key, Store } from 'varve';
import { collection } from 'varve/collections';

const DOCUMENTS = 5000;
export const TEAMS = 100;

export const documentOf = (id: number) => ({ id, team: id % TEAMS, text: `document ${id}, `.repeat(6) });

/** Resolves with the collection when all documents are in it. */
export async function documentsIn(db: Store<Key, unknown>) {
  const documents = collection<ReturnType<typeof documentOf>>()(db, 'documents', {
    key: 'id',
    indexes: { team: 'team' },
  });
  const missing = DOCUMENTS - (await documents.count());
  await documents.insertMany(Array.from({ length: missing }, (_, id) => documentOf(id)));
  return documents;
}
