// Finding elements, and making them as the inspector does.

export { element, mayMove, setText } from '../js/src/inspector/dom.ts';

/** The element with an id; throws when the page has none, or one of another kind. */
export function byId<T extends Element>(id: string, kind: abstract new () => T): T {
  const found = document.getElementById(id);
  if (!(found instanceof kind)) throw new Error(`The page has no ${kind.name} #${id}.`);
  return found;
}
