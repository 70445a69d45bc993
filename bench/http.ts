/**
 * `npm run bench -- http`: the HTTP handler under load, by autocannon over real sockets.
 *
 * Invariant: server and clients are processes of their own, on one machine; a row is one kind of request by so many
 * connections, each of which sends its next request when the one before is answered. An error or an answer that is not 2xx
 * fails the run. What counts is a ratio inside one table: batches beside single requests.
 */

import { fork } from 'node:child_process';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import autocannon from 'autocannon';
import { serve } from 'srvx';
import { open } from 'varve';
import { createHandler } from 'varve/http';
import { rate } from './figures.ts';

const HELP = `npm run bench -- http [options]

  --seconds N          of each row (default 4)
  --connections LIST   (default 10,25,50,100)
  --markdown FILE      writes the table that is printed`;

/** Keys that the requests choose from at random; all are there before. */
const KEYS = 100_000;
const BATCH = 100;
const VALUE = JSON.stringify({ title: 'Silt', text: 'x'.repeat(70) });
const JSON_HEADERS = { 'content-type': 'application/json' };

/** Answered without handler and store, with as many bytes as an entry: what the server itself takes. */
const BARE = '/bare';

interface Kind {
  readonly title: string;
  readonly method: 'GET' | 'PUT' | 'POST';
  /** Operations of one request. */
  readonly operations: number;
  readonly headers: Record<string, string>;
  readonly path: () => string;
  readonly body?: () => string;
}

const key = (): string => `k${Math.floor(Math.random() * KEYS)}`;
const sets = (): string => {
  const one = (): string => `{"op":"set","key":"${key()}","value":${VALUE}}`;
  return `[${Array.from({ length: BATCH }, one).join(',')}]`;
};
const gets = (): string => `[${Array.from({ length: BATCH }, () => `{"op":"get","key":"${key()}"}`).join(',')}]`;
const entry = { operations: 1, headers: {}, path: () => `/kv/${key()}` };
const batch = { method: 'POST', operations: BATCH, headers: JSON_HEADERS } as const;

const KINDS: readonly Kind[] = [
  { ...entry, title: 'the server alone', method: 'GET', path: () => BARE },
  { ...entry, title: 'GET /kv', method: 'GET' },
  { ...entry, title: 'PUT /kv', method: 'PUT', headers: JSON_HEADERS, body: () => VALUE },
  { ...batch, title: `POST /batch, ${BATCH} get`, path: () => '/batch', body: gets },
  { ...batch, title: `POST /batch, ${BATCH} set`, path: () => '/batch', body: sets },
  { ...batch, title: `the same, atomic`, path: () => '/batch?atomic=true', body: sets },
  {
    ...entry,
    title: `GET /range, ${BATCH} entries`,
    method: 'GET',
    operations: BATCH,
    path: () => `/range?gte=%22${key()}%22&limit=${BATCH}`,
  },
];

/**
 * Operations of the requests that are made before a row, so that the clients only send. Not more: every connection of autocannon
 * builds all of them anew when it begins, and the others wait for it.
 */
const PREPARED = 2000;

interface Row {
  readonly title: string;
  readonly connections: number;
  readonly requests: number;
  readonly operations: number;
  readonly p50: number;
  readonly p99: number;
  readonly failed: number;
}

async function measure(url: string, kind: Kind, connections: number, seconds: number): Promise<Row> {
  const { title, method, headers, path, body } = kind;
  const requests = Array.from({ length: Math.min(PREPARED / kind.operations, 200) }, () => {
    const request = { method, path: path(), headers };
    return body === undefined ? request : { ...request, body: body() };
  });
  const result = await autocannon({ url, connections, duration: seconds, requests });
  const { average } = result.requests;
  const failed = result.errors + result.timeouts + result.non2xx;
  const { p50, p99 } = result.latency;
  return { title, connections, requests: average, operations: average * kind.operations, p50, p99, failed };
}

/** The server's process: a store in memory, filled; its address goes to the parent. */
async function runServer(): Promise<void> {
  const db = await open('bench', { storage: 'memory' });
  const value: unknown = JSON.parse(VALUE);
  for (let i = 0; i < KEYS; i += 1000) {
    await db.setMany(Array.from({ length: 1000 }, (_, j): [string, unknown] => [`k${i + j}`, value]));
  }
  const handler = createHandler(db);
  const server = serve({
    fetch: (request) => (request.url.endsWith(BARE) ? new Response(VALUE) : handler(request)),
    port: 0,
    hostname: '127.0.0.1',
    silent: true,
    gracefulShutdown: false,
  });
  await server.ready();
  process.send?.(server.url);
}

function table(rows: readonly Row[]): string {
  const lines = [
    '| request | connections | requests/s | operations/s | beside single | p50, ms | p99, ms | errors |',
    '| --- | --: | --: | --: | --: | --: | --: | --: |',
  ];
  const single = (row: Row): number | undefined => {
    const title = row.title.includes('set') || row.title.includes('atomic') ? 'PUT /kv' : 'GET /kv';
    return rows.find((other) => other.title === title && other.connections === row.connections)?.operations;
  };
  for (const row of rows) {
    const of = single(row);
    const ratio = of === undefined || row.operations === row.requests ? '' : `${(row.operations / of).toFixed(1)}x`;
    const cells = [row.title, row.connections, rate(row.requests), rate(row.operations), ratio, row.p50, row.p99];
    lines.push(`| ${[...cells, row.failed].join(' | ')} |`);
  }
  return lines.join('\n');
}

async function main(): Promise<void> {
  const { values } = parseArgs({
    options: {
      seconds: { type: 'string', default: '4' },
      connections: { type: 'string', default: '10,25,50,100' },
      markdown: { type: 'string' },
      help: { type: 'boolean', default: false },
    },
  });
  if (values.help) {
    console.log(HELP);
    return;
  }
  const server = fork(fileURLToPath(import.meta.url), ['--serve']);
  const [url] = (await once(server, 'message')) as [string];
  const rows: Row[] = [];
  try {
    for (const kind of KINDS) {
      for (const connections of values.connections.split(',').map(Number)) {
        const row = await measure(url, kind, connections, Number(values.seconds));
        console.error(
          `${row.title}, ${connections} connections: ${rate(row.requests)} requests/s, ${row.failed} failed`,
        );
        rows.push(row);
      }
    }
  } finally {
    server.kill();
  }
  const text = table(rows);
  console.log(text);
  if (values.markdown !== undefined) writeFileSync(values.markdown, `${text}\n`);
  const failed = rows.reduce((sum, row) => sum + row.failed, 0);
  if (failed > 0) throw new Error(`${failed} requests failed.`);
}

if (process.argv[2] === '--serve') await runServer();
else await main();
