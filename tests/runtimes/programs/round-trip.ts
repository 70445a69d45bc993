// Opens a store in files through both APIs, reads what other runtimes left in it, and adds its own entry through each. It also
// opens stores in memory, and shares an encrypted store: with 32 bytes through one API, with a passphrase through the other.

import { open } from 'varve';
import { files } from 'varve/fs';
import { check, deleteStore, deriveKey, listStores, open as openSync, repair } from 'varve/synchronous';
import { parameters, say } from '../support/program.ts';

const { directory, name } = parameters<{ name: string }>();
const storage = files(directory);

const db = await open('shared', { storage });
await db.set([name, 'async'], { by: name, at: new Date(0), n: 2n ** 70n }, { durability: 'strict' });
const { ok, problems } = await db.check();
await db.close();

const sync = await openSync('shared', { storage });
sync.set([name, 'sync'], new Uint8Array([1, 2, 3]));
const keys = [...sync.keys()];
const value = sync.get([name, 'async']);
await sync.close();

const inMemory: unknown[] = [];
const here = await openSync('here', { storage: 'memory' });
here.set('a', 1);
inMemory.push(here.storage.kind, here.get('a'));
await here.close();
const there = await open('there', { storage: 'memory' });
await there.set('a', 2);
inMemory.push(there.storage.kind, await there.get('a'));
await there.close();

const codeOf = (work: Promise<unknown>): Promise<string> =>
  work.then(
    () => 'opened',
    (error: { code: string }) => error.code,
  );
const encryption = { key: new Uint8Array(32).fill(7) };
const passphrase = await deriveKey('silt', { iterations: 100_000 });
const byBytes = await open('secret', { storage, encryption });
if (byBytes.recovery.state === 'new') await byBytes.addEncryptionKey(passphrase);
await byBytes.set(name, 'secret');
await byBytes.close();
const byPassphrase = await openSync('secret', { storage, encryption: { key: passphrase } });
const secret = [...byPassphrase.keys()];
await byPassphrase.close();
const refused = await Promise.all([
  codeOf(openSync('secret', { storage })),
  codeOf(open('secret', { storage, encryption: { key: new Uint8Array(32) } })),
]);
const { ok: secretOk, withoutKey } = await check('secret', { storage });

const { name: copy, entries } = await repair('shared', { storage, into: `copy by ${name}` });
const stores = await listStores({ storage });
await deleteStore(copy, { storage });
const is = typeof value === 'object' && value !== null && 'n' in value && value.n === 2n ** 70n;
say(
  JSON.stringify({
    secret,
    refused,
    secretOk,
    withoutKey,
    keys,
    is,
    ok,
    problems,
    entries,
    stores,
    inMemory,
    recovery: sync.recovery.state,
  }),
);
