import { open } from 'varve';
import { collection, uuid7 } from 'varve/collections';

export interface Note {
  id: string;
  text: string;
}

const wordsOf = (text: string): string[] => text.toLowerCase().match(/[\p{L}\p{N}]+/gu) ?? [];

export const db = await open('app');
export const notes = collection<Note>()(db, 'notes', {
  key: 'id',
  newKey: uuid7,
  indexes: { words: { of: (note) => wordsOf(note.text), multi: true } },
});

/** The notes that have a word with each of these beginnings: 'lak mu' finds 'Mud of a lake'. `from` can be a snapshot's. */
export async function search(input: string, from: Pick<typeof notes, 'keys' | 'getMany'> = notes): Promise<Note[]> {
  const keys = await Promise.all(wordsOf(input).map((prefix) => from.keys('words', { prefix }).toArray()));
  const [fewest = [], ...others] = keys.sort((a, b) => a.length - b.length);
  const sets = others.map((list) => new Set(list));
  const found = fewest.filter((key) => sets.every((set) => set.has(key)));
  return (await from.getMany(found.slice(0, 20))).filter((note) => note !== undefined);
}
