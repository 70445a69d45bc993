// A page saves something at the last moment, while its user leaves it for another page, and can come back by the back/forward cache.

import type { Store } from 'varve';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { ENGINES, Session } from './support/engines.ts';

declare global {
  /** The store that a test leaves open in a page. */
  var draft: Store<string, string>;
}

const EVENTS = ['pagehide', 'visibilitychange'] as const;
/** The worker may get no time on a busy machine. */
const ATTEMPTS = 5;

describe.each(ENGINES.filter(({ rung }) => rung.kind === 'opfs'))('$name', (engine) => {
  let session: Session;

  beforeAll(async () => {
    session = await Session.start(engine, undefined, true);
  });

  afterAll(() => session?.end());

  // The worker was ended before the program's own listener had run: nothing that it wrote was ever saved, unless the user came back.
  test.each(EVENTS)('a write in %s is in the store, and the page goes on when its user comes back', async (event) => {
    const saved: (string | undefined)[] = [];
    for (let attempt = 0; attempt < ATTEMPTS && !saved.includes('saved'); attempt++) {
      const name = `${event} ${attempt}`;
      const page = await session.browser.openTab();
      await page.evaluate(
        async ([name, event]) => {
          globalThis.draft = await varve.open<string, string>(name as string);
          await draft.set('text', 'old');
          document.addEventListener('visibilitychange', () => {
            if (event === 'visibilitychange' && document.visibilityState === 'hidden') void draft.set('text', 'saved');
          });
          addEventListener('pagehide', () => {
            if (event === 'pagehide') void draft.set('text', 'saved');
          });
        },
        [name, event],
      );
      await page.leave();
      const other = await session.browser.openTab();
      saved.push(
        await other.evaluate(async (name) => {
          const store = await varve.open<string, string>(name);
          const text = await store.get('text');
          await store.close();
          return text;
        }, name),
      );
      await other.close();
      await page.back();
      const text = await page.evaluate(async (name) => {
        const store = 'draft' in globalThis ? draft : await varve.open<string, string>(name);
        await store.set('back', 'again');
        return store.get('text');
      }, name);
      // An unanswered write is sent again.
      expect(['saved', saved.at(-1)]).toContain(text);
      await page.close();
    }
    expect(saved).toContain('saved');
  });
});
