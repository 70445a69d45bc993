// Imports an export from a file into a store in files, opens that again, prints a digest of all its reads, and exports it.

import { createReadStream, writeFileSync } from 'node:fs';
import { open } from 'varve';
import { files } from 'varve/fs';
import { digest } from '../../support/digest.ts';
import { parameters, say } from '../support/program.ts';

const { directory, name, file, into } = parameters<{ name: string; file: string; into: string }>();
const storage = files(`${directory}/stores of ${name}`);

const db = await open('imported', { storage });
const { bytes } = await db.import((offset) => createReadStream(file, { start: offset }));
await db.close();

const again = await open('imported', { storage, version: 5, upgrade: () => Promise.reject(new Error('upgraded')) });
const hash = await digest(again);
writeFileSync(
  into,
  new Uint8Array(await new Response(again.export() as ReadableStream<Uint8Array<ArrayBuffer>>).arrayBuffer()),
);
await again.close();
say(JSON.stringify({ bytes, hash, kind: again.storage.kind }));
