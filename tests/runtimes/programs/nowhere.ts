// Opens stores without a place, and prints the error of each.

import { open, VarveError } from 'varve';
import { open as openInline } from 'varve/inline';
import { open as openSync } from 'varve/synchronous';
import { say } from '../support/program.ts';

const refused: unknown[] = [];
for (const openIt of [open, openInline, openSync]) {
  try {
    const { storage } = await openIt('notes');
    refused.push({ storage });
  } catch (error) {
    if (!(error instanceof VarveError)) throw error;
    refused.push({ code: error.code, message: error.message });
  }
}
say(JSON.stringify(refused));
