// Opens stores without a place, and prints the error of each.

import { open, VarveError } from 'varve';
import { open as openHere } from 'varve/here';
import { open as openSync } from 'varve/sync';
import { say } from '../support/program.ts';

const refused: unknown[] = [];
for (const openIt of [open, openHere, openSync]) {
  try {
    const { storage } = await openIt('notes');
    refused.push({ storage });
  } catch (error) {
    if (!(error instanceof VarveError)) throw error;
    refused.push({ code: error.code, message: error.message });
  }
}
say(JSON.stringify(refused));
