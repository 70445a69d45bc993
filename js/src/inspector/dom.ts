/**
 * Making elements.
 * Invariant: text reaches the page as text, never as markup.
 */

/** The properties of a new element. */
interface Traits {
  readonly id?: string;
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
  if (traits.id !== undefined) made.id = traits.id;
  if (traits.class !== undefined) made.className = traits.class;
  if (traits.text !== undefined) made.textContent = traits.text;
  for (const [name, value] of Object.entries(traits.attributes ?? {})) made.setAttribute(name, value);
  made.append(...children);
  return made;
}

/** Makes a button that submits no form. */
export function button(id: string, text: string, kind = ''): HTMLButtonElement {
  return element('button', { id, class: kind, text, attributes: { type: 'button' } });
}

/** Makes the button that submits its form. */
export function submit(id: string, text: string, kind = ''): HTMLButtonElement {
  return element('button', { id, class: kind, text, attributes: { type: 'submit' } });
}

/** Makes the input for a text that is no prose, such as a key. */
export function textInput(id: string, attributes: Traits['attributes'] = {}): HTMLInputElement {
  const plain = { type: 'text', autocomplete: 'off', autocapitalize: 'off', spellcheck: 'false' };
  return element('input', { id, attributes: { ...plain, ...attributes } });
}

/** Makes a choice of values, each with its words. */
export function select(id: string, options: Readonly<Record<string, string>> = {}): HTMLSelectElement {
  const choices = Object.entries(options).map(([value, text]) => element('option', { text, attributes: { value } }));
  return element('select', { id }, ...choices);
}

/** Makes a label above an input. */
export function field(words: string, input: HTMLElement, kind = ''): HTMLElement {
  const label = element('label', { text: words, attributes: { for: input.id } });
  return element('div', { class: `field ${kind}`.trim() }, label, input);
}

/** Makes a label before an input. */
export function inline(words: string, input: HTMLElement): HTMLElement {
  return element('label', { class: 'inline' }, element('span', { text: words }), input);
}

/** Makes a box to check, with its label behind it. */
export function check(input: HTMLInputElement, words: string): HTMLElement {
  input.type = 'checkbox';
  return element('label', { class: 'check' }, input, ` ${words}`);
}

/** Makes a line for what was done, which is read out. */
export function statusLine(id: string): HTMLElement {
  return element('p', { id, class: 'note', attributes: { role: 'status' } });
}

/** Makes a line for an error, which is read out at once. */
export function errorLine(id: string): HTMLElement {
  return element('p', { id, class: 'error', attributes: { role: 'alert' } });
}

/** Makes a titled part of a view. */
export function section(kind: string, title: HTMLElement, ...children: Node[]): HTMLElement {
  return element(
    'section',
    { class: `panel ${kind}`, attributes: { 'aria-labelledby': title.id } },
    title,
    ...children,
  );
}

/** Makes the title of a part of a view. */
export function title(id: string, text: string): HTMLElement {
  return element('h2', { id, text });
}

/** Changes a text only when it differs, so that nothing is laid out or announced anew. */
export function setText(target: Element, text: string): void {
  if (target.textContent !== text) target.textContent = text;
}

/** Whether changes may be animated. */
export function mayMove(): boolean {
  return !matchMedia('(prefers-reduced-motion: reduce)').matches;
}
