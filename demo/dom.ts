// Finding and making elements.
// Invariant: text reaches the page as text, never as markup.

/** The element with an id; throws when the page has none, or one of another kind. */
export function byId<T extends Element>(id: string, kind: abstract new () => T): T {
  const found = document.getElementById(id);
  if (!(found instanceof kind)) throw new Error(`The page has no ${kind.name} #${id}.`);
  return found;
}

export interface Traits {
  readonly class?: string;
  readonly text?: string;
  readonly attributes?: Readonly<Record<string, string>>;
}

/** Makes an element with its children. */
export function element<T extends keyof HTMLElementTagNameMap>(
  tag: T,
  traits: Traits = {},
  ...children: (Node | string)[]
): HTMLElementTagNameMap[T] {
  const made = document.createElement(tag);
  if (traits.class !== undefined) made.className = traits.class;
  if (traits.text !== undefined) made.textContent = traits.text;
  for (const [name, value] of Object.entries(traits.attributes ?? {})) made.setAttribute(name, value);
  made.append(...children);
  return made;
}

/** Changes a text only when it differs, so that nothing is laid out or announced anew. */
export function setText(target: Element, text: string): void {
  if (target.textContent !== text) target.textContent = text;
}

/** Whether changes may be animated. */
export function mayMove(): boolean {
  return !matchMedia('(prefers-reduced-motion: reduce)').matches;
}
