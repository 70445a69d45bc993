import { type Key, open, type Store, VarveError } from 'varve';
import { denoKv } from 'varve/deno-kv';

type Notes = Store<Key, string>;

const storage = denoKv(await Deno.openKv());

/** Codes of the errors after which a store takes no more calls. */
const LOST = new Set<unknown>(['VARVE_LOCKED', 'VARVE_POISONED', 'VARVE_CLOSED']);

/** The store that all requests of this isolate share, and how many of them use it. */
let shared: { readonly opening: Promise<Notes>; users: number } | undefined;

/** Works on the store, which is closed when no request needs it any more. */
async function withStore<T>(work: (db: Notes) => Promise<T>): Promise<T> {
  shared ??= {
    opening: open<Key, string>('notes', { storage, lockTimeout: 10_000, memoryBytes: 8 * 2 ** 20 }),
    users: 0,
  };
  const mine = shared;
  mine.users++;
  let isOpen = false;
  try {
    const db = await mine.opening;
    isOpen = true;
    return await work(db);
  } catch (error) {
    // It did not open, or another isolate has taken it over: the next request opens it anew.
    const isLost = !isOpen || LOST.has((error as { code?: string }).code);
    if (isLost && shared === mine) shared = undefined;
    throw error;
  } finally {
    if (--mine.users === 0) {
      if (shared === mine) shared = undefined;
      await mine.opening.then((db) => db.close()).catch(() => undefined);
    }
  }
}

Deno.serve(async (request) => {
  try {
    if (request.method === 'POST') {
      const text = await request.text();
      const { sequence } = await withStore((db) => db.set(['note', Date.now(), crypto.randomUUID()], text));
      return Response.json({ sequence }, { status: 201 });
    }
    const newest = { prefix: ['note'], reverse: true, limit: 20 };
    return Response.json(await withStore((db) => db.values(newest).toArray()));
  } catch (error) {
    if (!(error instanceof VarveError && error.code === 'VARVE_LOCKED')) throw error;
    return new Response('Another isolate has the store. Try again.', { status: 503, headers: { 'retry-after': '1' } });
  }
});
