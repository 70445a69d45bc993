/**
 * Finding and making elements of the benchmark page.
 *
 * Invariant: text reaches the page as text, never as markup: what a saved run or a shared address says is not trusted.
 */

const SEEN_MS = 6000;

/** The element with this id; the page has it. */
export function byId<T extends HTMLElement = HTMLElement>(id: string): T {
  const found = document.getElementById(id);
  if (found === null) throw new Error(`The page has no element #${id}.`);
  return found as T;
}

/** What an element is made with. */
export interface Traits {
  readonly class?: string;
  readonly id?: string;
  readonly text?: string;
  readonly attributes?: Readonly<Record<string, string>>;
}

/** Makes an element with its children. */
export function make<K extends keyof HTMLElementTagNameMap>(
  tag: K,
  traits: Traits = {},
  ...children: (Node | string)[]
): HTMLElementTagNameMap[K] {
  const made = document.createElement(tag);
  if (traits.class !== undefined) made.className = traits.class;
  if (traits.id !== undefined) made.id = traits.id;
  if (traits.text !== undefined) made.textContent = traits.text;
  for (const [name, value] of Object.entries(traits.attributes ?? {})) made.setAttribute(name, value);
  made.append(...children);
  return made;
}

/** A button that does something other than submitting. */
export function button(
  text: string,
  act: () => void,
  attributes: Readonly<Record<string, string>> = {},
): HTMLButtonElement {
  const made = make('button', { text, attributes: { type: 'button', ...attributes } });
  made.addEventListener('click', act);
  return made;
}

/** Changes a text only when it is another one, so that nothing is laid out or announced anew. */
export function setText(target: Element, text: string): void {
  if (target.textContent !== text) target.textContent = text;
}

/** Says something short to people who listen to the page, and shows it for a moment to those who look at it. */
export function announce(text: string): void {
  const place = byId('said');
  // A region that says the same twice is not read twice: a new child is.
  const said = make('span', { text });
  place.replaceChildren(said);
  setTimeout(() => said.remove(), SEEN_MS);
}

/** Copies a text, and says how it went. */
export async function copyText(text: string, what: string): Promise<void> {
  try {
    await navigator.clipboard.writeText(text);
    announce(`${what} copied.`);
  } catch {
    announce(`The browser did not let the page copy: ${what} is not on the clipboard. Allow it, or export a file.`);
  }
}
