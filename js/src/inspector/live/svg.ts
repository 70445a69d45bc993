/**
 * Making and changing the elements of a picture.
 * Invariant: an attribute is written only when it changes.
 */

import type { Box } from './layout.ts';

const SVG = 'http://www.w3.org/2000/svg';

type Attributes = Readonly<Record<string, string | number>>;

/** Makes an element of a picture. */
export function svg<T extends keyof SVGElementTagNameMap>(
  tag: T,
  attributes: Attributes = {},
  ...children: Node[]
): SVGElementTagNameMap[T] {
  const made = document.createElementNS(SVG, tag);
  change(made, attributes);
  made.append(...children);
  return made;
}

/** Makes a text. */
export function label(words: string, attributes: Attributes = {}): SVGTextElement {
  const made = svg('text', attributes);
  made.textContent = words;
  return made;
}

/** Sets attributes. */
export function change(target: Element, attributes: Attributes): void {
  for (const [name, value] of Object.entries(attributes)) {
    const text = typeof value === 'number' ? String(Math.round(value * 100) / 100) : value;
    if (target.getAttribute(name) !== text) target.setAttribute(name, text);
  }
}

/** A box as attributes of a `rect`. */
export function place({ x, y, width, height }: Box): Attributes {
  return { x, y, width: Math.max(0, width), height: Math.max(0, height) };
}
