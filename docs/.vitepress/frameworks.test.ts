// The examples for Vue, Svelte and Solid: each follows a live query through the interface that it has for such values.

import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { createRoot, from } from 'solid-js';
import { derived } from 'svelte/store';
import { expect, test, vi } from 'vitest';
import { effectScope } from 'vue';
import { open as openInline } from '../../js/src/inline.ts';
import { root } from '../../scripts/tools.mjs';
import { wasm } from '../../tests/node/support/engine.ts';
import { readmeBlock } from '../../tests/support/readme.ts';

test('Vue, Svelte and Solid follow a live query, and end it with the component', async () => {
  const file = join(root, 'build', 'test-docs-vue.ts');
  mkdirSync(join(root, 'build'), { recursive: true });
  writeFileSync(file, readmeBlock('ts', "from 'vue'"));
  const { useLive } = await import(pathToFileURL(file).href);
  await using db = await openInline<string, number>('live', { wasm, storage: 'memory' });
  const live = db.live('a', { initial: 0 });
  const scope = effectScope();
  const ref = scope.run(() => useLive(live));
  const doubled: unknown[] = [];
  const endSvelte = derived(live, (value = 0) => value * 2).subscribe((value) => void doubled.push(value));
  const [signal, endSolid] = createRoot((end) => [from(live), end] as const);
  await db.set('a', 1);
  await vi.waitFor(() => expect([ref?.value, doubled.at(-1), signal()]).toEqual([1, 2, 1]));
  scope.stop();
  endSvelte();
  endSolid();
  await db.set('a', 2);
  const stop = live.subscribe(() => undefined);
  await vi.waitFor(() => expect(live.value).toBe(2));
  stop();
  expect([ref?.value, doubled.at(-1), signal()]).toEqual([1, 2, 1]);
});
