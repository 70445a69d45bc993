/**
 * Code of a page that a visitor can change and run, with a real store: `<Playground>` around code blocks of JavaScript.
 *
 * Invariant: nothing of the package is loaded before a first run. The code runs as a module of its own in the page, and imports the
 * package from beside the demo.
 */

import { defineComponent, h, onMounted, ref } from 'vue';
import { show } from './show.ts';

const PACKAGE = '/demo/varve/';

/** The console of the run that is under way: the code of an earlier run, such as a live query, prints no more. */
let current: object | undefined;

/** The code as a module that prints to `globalThis.playgroundConsole`, with the package at its address. */
function moduleOf(code: string): string {
  const addressed = code.replaceAll(/(?<=\bfrom\s*)'varve(?:\/([\w-]+))?'/g, (_, entry = 'index') =>
    JSON.stringify(new URL(`${PACKAGE}${entry}.js`, location.href).href),
  );
  return `const console = globalThis.playgroundConsole; ${addressed}`;
}

/** Runs the code as a module. Rejects with its error. */
async function runModule(code: string, print: (line: string) => void): Promise<void> {
  const console = { log: (...values: unknown[]) => current === console && print(values.map(show).join(' ')) };
  current = console;
  Object.assign(globalThis, { playgroundConsole: console });
  const url = URL.createObjectURL(new Blob([moduleOf(code)], { type: 'text/javascript' }));
  try {
    await import(/* @vite-ignore */ url);
  } finally {
    URL.revokeObjectURL(url);
  }
}

export const Playground = defineComponent((_, { slots }) => {
  const root = ref<HTMLElement>();
  const lines = ref<string[]>([]);
  const isRunning = ref(false);

  const run = async (): Promise<void> => {
    const code = root.value?.querySelector('.blocks > .active code, :scope > [class*=language-] code');
    if (isRunning.value || !code) return;
    isRunning.value = true;
    lines.value = [];
    const print = (line: string): void => {
      lines.value = [...lines.value, line];
    };
    await runModule((code as HTMLElement).innerText, print).catch((error) => print(show(error)));
    isRunning.value = false;
  };

  const onKeydown = (event: KeyboardEvent): void => {
    if (event.key !== 'Enter' || !(event.ctrlKey || event.metaKey)) return;
    event.preventDefault();
    void run();
  };

  onMounted(() => {
    for (const code of root.value?.querySelectorAll<HTMLElement>('pre > code') ?? []) {
      code.contentEditable = 'plaintext-only';
      code.spellcheck = false;
      code.role = 'textbox';
      code.ariaMultiLine = 'true';
      code.ariaLabel = 'Code, which you can change';
    }
  });

  return () =>
    h('div', { class: 'playground', ref: root, onKeydown }, [
      slots['default']?.(),
      h('p', { class: 'bar' }, [
        h('button', { type: 'button', disabled: isRunning.value, onClick: run }, 'Run'),
        h('span', 'You can change the code. Ctrl+Enter runs it, too.'),
      ]),
      h(
        'pre',
        { class: 'output', role: 'log', ariaLabel: 'Output', tabindex: 0 },
        lines.value.length > 0 ? lines.value.join('\n') : 'The output comes here.',
      ),
    ]);
});
