/** A store in a Durable Object behind its Worker: the form of docs/guide/http.md, with one object. */

import { type ObjectNamespace, VarveObject } from 'varve/cloudflare';
import { createHandler, type Handler } from 'varve/http';
import { ROWS, site } from './site.ts';

interface Env {
  readonly STORES: ObjectNamespace;
}

/** The object; its `/bare` makes the same way through the Worker, and touches no store. */
export class HttpStore extends VarveObject<Env> {
  #site: Handler | undefined;

  async fetch(request: Request): Promise<Response> {
    if (request.url.endsWith(ROWS)) return new Response(String(this.rowsWritten()));
    this.#site ??= site(createHandler(this.store));
    return this.#site(request);
  }
}

// biome-ignore lint/style/noDefaultExport: the form of a Worker.
export default {
  fetch(request: Request, { STORES }: Env): Promise<Response> {
    const stub = STORES.get(STORES.idFromName('bench')) as { fetch(request: Request): Promise<Response> };
    return stub.fetch(request);
  },
};
