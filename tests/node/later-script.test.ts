// Scripts that the engine worker loads later.

import { expect, test } from 'vitest';
import { laterScript, placeOf } from '../../js/src/storage/later-script.ts';

test('a script that cannot be loaded is named, with its use, and the next call tries again', async () => {
  const place = placeOf<number>('varve.test.later');
  const makes = 'globalThis[Symbol.for("varve.test.later")].made = 7';
  const scripts = ['file:///no/such/script.js', 'data:text/javascript,0', `data:text/javascript,${encodeURI(makes)}`];
  const load = laterScript(place, 'tests', () => new URL(scripts.shift() ?? 'file:///no/more'));
  await expect(load()).rejects.toMatchObject({
    code: 'VARVE_UNAVAILABLE',
    message: expect.stringMatching(/^The script for tests could not be loaded from file:\/\/\/no\/such\/script\.js \(/),
  });
  await expect(load()).rejects.toMatchObject({ message: expect.stringContaining('it is another script') });
  await expect(load()).resolves.toBe(7);
  // It is loaded once.
  await expect(load()).resolves.toBe(7);
});
