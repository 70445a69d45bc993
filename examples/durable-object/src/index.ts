import { connect, VarveObject } from 'varve/cloudflare';

interface Env {
  NOTES: DurableObjectNamespace<Notes>;
}

export class Notes extends VarveObject<Env> {
  add(note: { title: string }): number {
    const [last] = this.store.keys({ prefix: ['note'], reverse: true, limit: 1 }) as Iterable<[string, number]>;
    const id = (last?.[1] ?? 0) + 1;
    this.store.set(['note', id], note); // no await, no flush: the answer leaves when this is durable
    return id;
  }
}

export default {
  /** `POST /ada` adds a note of ada, `GET /ada` lists her newest. */
  async fetch(request: Request, env: Env): Promise<Response> {
    const stub = env.NOTES.get(env.NOTES.idFromName(new URL(request.url).pathname));
    if (request.method === 'POST') {
      const id = await stub.add(await request.json()); // methods of yours, through the platform's RPC
      return Response.json({ id }, { status: 201 });
    }
    const db = connect(stub); // or its store, from any Worker: get, set, batch, entries, count, ...
    return Response.json(await db.values({ prefix: ['note'], reverse: true, limit: 20 }).toArray());
  },
};
