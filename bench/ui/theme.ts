/**
 * Dark or light: as the system says, or as was chosen on the page before.
 *
 * Invariant: what is drawn on a canvas asks here for its colours, and is told when they change.
 */

import { byId } from './dom.ts';

/** What can be chosen. `system` follows the browser. */
export type Theme = 'system' | 'light' | 'dark';

const KEPT = 'varve-bench-theme';
const listeners = new Set<() => void>();
const dark = matchMedia('(prefers-color-scheme: dark)');

/** Shows the kept choice and follows the control and the system. */
export function followTheme(): void {
  const select = byId<HTMLSelectElement>('theme');
  select.value = kept();
  apply(kept());
  select.addEventListener('change', () => {
    const chosen = themeOf(select.value);
    try {
      localStorage.setItem(KEPT, chosen);
    } catch {
      // Storage is denied: the choice lasts as long as the page.
    }
    apply(chosen);
  });
  dark.addEventListener('change', tell);
}

/** Calls `changed` whenever the colours are others; the returned function ends that. */
export function onTheme(changed: () => void): () => void {
  listeners.add(changed);
  return () => listeners.delete(changed);
}

/** Whether the page is dark now. */
export function isDark(): boolean {
  const chosen = document.documentElement.dataset['theme'];
  return chosen === 'dark' || (chosen !== 'light' && dark.matches);
}

/** A colour of the style sheet, such as `--ink`, as canvases take it. */
export function colour(name: string): string {
  // A custom property computes to its text, `light-dark(...)` included; a colour computes to what is shown.
  const probe = document.createElement('span');
  probe.style.color = `var(${name})`;
  document.body.append(probe);
  const { color } = getComputedStyle(probe);
  probe.remove();
  return color;
}

function apply(theme: Theme): void {
  if (theme === 'system') delete document.documentElement.dataset['theme'];
  else document.documentElement.dataset['theme'] = theme;
  tell();
}

function tell(): void {
  for (const listener of listeners) listener();
}

function kept(): Theme {
  try {
    return themeOf(localStorage.getItem(KEPT));
  } catch {
    return 'system';
  }
}

function themeOf(text: string | null): Theme {
  return text === 'light' || text === 'dark' ? text : 'system';
}
