// `varve/react` on a server: it renders the initial values, opens nothing and asks no store. The browser tests have its behaviour in a page.

import { createElement } from 'react';
import { renderToString } from 'react-dom/server';
import { expect, expectTypeOf, test, vi } from 'vitest';
import { useLive, useStore } from '../../js/src/react.ts';
import type { Store } from '../../js/src/store/store.ts';
import type { View } from '../../js/src/store/view.ts';

test('a server renders initial values, opens no store and runs no query', () => {
  const worker = vi.fn();
  const live = vi.fn();
  const view = { live } as unknown as View<string, number>;
  const rendered: unknown[] = [];
  const Part = (): string => {
    const db = useStore<string, number>('app', { worker });
    rendered.push(db, useLive(db, 'a', []), useLive(view, 'a', [], { initial: 1 }));
    rendered.push(useLive(new Promise<typeof view>(() => undefined), { as: 'keys' }, [], { initial: [] }));
    return 'done';
  };
  expect(renderToString(createElement(Part))).toBe('done');
  expect(rendered).toEqual([undefined, undefined, 1, []]);
  expect(worker).not.toHaveBeenCalled();
  expect(live).not.toHaveBeenCalled();
});

test('results have the types of the store and of the query', () => {
  type Db = Store<string, number> | undefined;
  const types = (db: Db, opening: Promise<View<string, number>>) => ({
    store: useStore<string, number>('app'),
    key: useLive(db, 'a', []),
    entries: useLive(db, { limit: 1 }, []),
    keys: useLive(opening, { as: 'keys' }, [], { initial: [] }),
    values: useLive(opening, { as: 'values' }, []),
    count: useLive(db, { as: 'count' }, [], { initial: 0 }),
    read: useLive(db, async (view) => (await view.get('a'))?.toFixed(), [], { gte: 'a' }),
  });
  expectTypeOf(types).returns.toEqualTypeOf<{
    store: Db;
    key: number | undefined;
    entries: [string, number][] | undefined;
    keys: string[];
    values: number[] | undefined;
    count: number;
    read: string | undefined;
  }>();
});
