// Short links: `PUT /silt` with a URL makes one, `GET /silt` follows it, and `GET /` lists all with their visits.

import { createServer } from 'node:http';
import { text } from 'node:stream/consumers';
import { open } from 'varve';
import { files } from 'varve/fs';

// An answered write survives a power loss.
const db = await open('links', { storage: files('./data'), durability: 'strict' });

async function answer(request, response) {
  const name = request.url.slice(1);
  if (request.method === 'PUT') {
    const { href } = new URL(await text(request));
    await db.set(name, { url: href, visits: 0 }, { ifSequence: null }); // only if there is no such link
    response.writeHead(201).end();
  } else if (name === '') {
    for await (const [name, { url, visits }] of db.entries()) response.write(`${visits} ${name} ${url}\n`);
    response.end();
  } else {
    const url = await visit(name);
    if (url === undefined) response.writeHead(404).end();
    else response.writeHead(302, { location: url }).end();
  }
}

/** Counts a visit. Simultaneous visits are all counted: a transaction whose reads have changed runs again. */
function visit(name) {
  return db.transaction(async (tx) => {
    const link = await tx.get(name);
    if (link !== undefined) tx.set(name, { ...link, visits: link.visits + 1 });
    return link?.url;
  });
}

const STATUS = { VARVE_CONFLICT: 409, VARVE_INVALID_KEY: 400, ERR_INVALID_URL: 400 };

const server = createServer((request, response) => {
  answer(request, response).catch((error) => {
    if (!(error.code in STATUS)) console.error(error);
    if (response.headersSent) response.destroy();
    else response.writeHead(STATUS[error.code] ?? 500).end();
  });
});
server.listen(process.env.PORT ?? 3000, () => console.log(`http://localhost:${server.address().port}`));

// Answers what was asked, then closes the store.
for (const signal of ['SIGINT', 'SIGTERM']) process.once(signal, () => server.close(() => db.close()));
