// Opens a store in files through both APIs, reads what other runtimes left in it, and adds its own entry through each. It also
// opens stores in memory.

import { open } from 'varve';
import { files } from 'varve/fs';
import { deleteStore, listStores, open as openSync, repair } from 'varve/synchronous';
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

const { store, entries } = await repair('shared', { storage, into: `copy by ${name}` });
const stores = await listStores({ storage });
await deleteStore(store, { storage });
const is = typeof value === 'object' && value !== null && 'n' in value && value.n === 2n ** 70n;
say(JSON.stringify({ keys, is, ok, problems, entries, stores, inMemory, recovery: sync.recovery.state }));
