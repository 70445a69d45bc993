import { type Key, open, type Transaction } from 'varve';
import { uuid7 } from 'varve/collections';

type Step = { key: Key; before: unknown };

export const db = await open('app');

function put(tx: Transaction<Key, unknown>, key: Key, value: unknown): void {
  if (value === undefined) tx.delete(key);
  else tx.set(key, value);
}

/** Sets a key, or deletes it with `undefined`, so that `undo` can take it back. */
export async function change(key: Key, value: unknown): Promise<void> {
  await db.transaction(async (tx) => {
    tx.set(['undo', uuid7()], { key, before: await tx.get(key) });
    tx.deleteRange({ prefix: ['redo'] });
    put(tx, key, value);
  });
}

/** Takes the newest step of one list back, and adds its opposite to the other. Returns the key, or undefined if there is no step. */
async function back(from: string, to: string): Promise<Key | undefined> {
  return db.transaction(async (tx) => {
    for await (const [step, value] of tx.entries({ prefix: [from], reverse: true, limit: 1 })) {
      const { key, before } = value as Step;
      tx.set([to, uuid7()], { key, before: await tx.get(key) });
      tx.delete(step);
      put(tx, key, before);
      return key;
    }
    return undefined;
  });
}

export const undo = () => back('undo', 'redo');
export const redo = () => back('redo', 'undo');
