// Opens a store and reports that, or the error; keeps it open until it is killed.

import { files } from 'varve/fs';
import { open, VarveError } from 'varve/synchronous';
import { parameters, say } from '../support/program.ts';

const { directory, lockTimeout, hold } = parameters<{ lockTimeout: number; hold: boolean }>();
try {
  const db = await open('held', { storage: files(directory), lockTimeout });
  db.set('holder', 1, { durability: 'strict' });
  say(JSON.stringify({ opened: true }));
  if (hold) setInterval(() => undefined, 1000);
  else await db.close();
} catch (error) {
  if (!(error instanceof VarveError)) throw error;
  say(JSON.stringify({ opened: false, code: error.code, message: error.message }));
}
