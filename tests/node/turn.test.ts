/** Turns of the event loop: what runs at the end of this one, and what runs in a later one. */

import { expect, test } from 'vitest';
import { afterTurn, nextTurn, soon } from '../../js/src/runtime/turn.ts';

test('soon calls back after the code that runs, in order, and before a later turn', async () => {
  const calls: string[] = [];
  afterTurn(() => calls.push('later'));
  soon(() => {
    calls.push('first');
    soon(() => calls.push('nested'));
  });
  soon(() => calls.push('second'));
  calls.push('now');
  await nextTurn();
  expect(calls).toEqual(['now', 'first', 'second', 'nested', 'later']);
});
