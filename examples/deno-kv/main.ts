import { type Key, open, type Store, VarveError } from 'varve';
import { denoKv } from 'varve/deno-kv';

type Notes = Store<Key, string>;

const storage = denoKv(await Deno.openKv());

let users = 0;
let opening: Promise<Notes> | undefined;

/** Works on the store, which all requests of this isolate share, and which is closed when none of them needs it. */
async function withStore<T>(work: (db: Notes) => Promise<T>): Promise<T> {
  users++;
  opening ??= open<Key, string>('notes', { storage, lockTimeout: 10_000, memoryBytes: 8 * 2 ** 20 });
  try {
    return await work(await opening);
  } finally {
    if (--users === 0) {
      const last = opening;
      opening = undefined;
      await last.then((db) => db.close()).catch(() => undefined);
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
