// The result that every page with the README's first example must have, whatever tool built it.

import { expect } from 'vitest';
import type { Browser, Loaded } from './page.ts';
import { POLICY, POLICY_WITHOUT_WASM, withSite } from './site.ts';

const NOTE = { title: 'Silt', tags: ['lake'] };

/** Loads a page twice: the second load must find what the first one wrote. */
export async function expectDurable(browser: Browser, url: string): Promise<[Loaded, Loaded]> {
  const first = await browser.load(url);
  const again = await browser.load(url);
  for (const [index, { seen, failure, complaints, workers }] of [first, again].entries()) {
    expect(failure).toBeUndefined();
    expect(complaints).toEqual([]);
    expect(seen).toEqual({
      storage: 'opfs',
      recovery: index === 0 ? 'new' : 'clean',
      note: NOTE,
      logged: [[['note', 42], NOTE]],
      loads: index + 1,
      inOther: ['indexeddb', index + 1],
      isIsolated: false,
    });
    expect(workers.length).toBeGreaterThan(0);
  }
  return [first, again];
}

/** A built site under the strict policy: durable, the engine in a worker's script and a wasm file of the site. */
export async function expectSite(browser: Browser, folder: string, policy = POLICY): Promise<void> {
  await withSite(folder, policy, async ({ origin, violations }) => {
    const [{ workers, fetched }] = await expectDurable(browser, `${origin}/`);
    expect([...fetched.keys()]).toEqual(expect.arrayContaining([...workers]));
    const wasm = [...fetched].filter(([path]) => path.endsWith('.wasm'));
    expect(wasm.map(([, type]) => type)).toEqual(['application/wasm']);
    expect(violations).toEqual([]);
  });
}

/** Without permission to compile WebAssembly, `open` reports that. */
export async function expectRefusal(browser: Browser, folder: string, policy = POLICY_WITHOUT_WASM): Promise<void> {
  await withSite(folder, policy, async ({ origin, violated }) => {
    const { failure } = await browser.load(`${origin}/`);
    expect(failure).toEqual({ code: 'VARVE_UNSUPPORTED', message: expect.stringContaining('WebAssembly') });
    // The policy was the cause. And violations in workers are reported, or no other test here would notice them.
    expect(await violated).toContain('wasm-eval');
  });
}
