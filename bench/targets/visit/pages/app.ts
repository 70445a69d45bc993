/**
 * A small notes app in plain DOM, the same over each store: a search field, a list, and a form for a new note.
 *
 * Invariant: the list is read from the store each time. The event `shown` comes when it is in the document. At its first visit the app
 * writes a note and reads it back, before it shows anything.
 */

export interface Note {
  readonly title: string;
  readonly text: string;
}

/** The store of the app. Titles are its keys. */
export interface Notes {
  /** The first `limit` notes whose titles begin so, by their titles. */
  find(beginning: string, limit: number): Promise<readonly Note[]>;
  /** Resolves when the note is stored, `relaxed`. */
  add(note: Note): Promise<unknown>;
}

declare global {
  /** For the command line. */
  var notes: Notes;
  var addAll: (titles: readonly string[]) => Promise<unknown>;
  /** Resolves with the milliseconds from the navigation to the first list. */
  var firstShown: Promise<number>;
}

export const WELCOME = 'welcome';
const SHOWN = 50;

export const noteOf = (title: string): Note => ({ title, text: `${title}, `.repeat(20) });

/** Begins with the store that is being opened. */
export function start(opening: Promise<Notes>): void {
  document.body.innerHTML = '<input><form><button>Add</button></form><ul></ul>';
  const [search, form, list] = document.body.children as unknown as [HTMLInputElement, HTMLFormElement, HTMLElement];
  const show = async (): Promise<number> => {
    const found = await globalThis.notes.find(search.value, SHOWN);
    const items = found.map(({ title, text }) => {
      const item = document.createElement('li');
      item.textContent = `${title}: ${text}`;
      return item;
    });
    list.replaceChildren(...items);
    list.dispatchEvent(new CustomEvent('shown'));
    return performance.now();
  };
  search.oninput = show;
  form.onsubmit = async (event) => {
    event.preventDefault();
    await globalThis.notes.add(noteOf(search.value));
    await show();
  };
  globalThis.addAll = (titles) => Promise.all(titles.map((title) => globalThis.notes.add(noteOf(title))));
  globalThis.firstShown = opening.then(async (notes) => {
    globalThis.notes = notes;
    if ((await notes.find('', 1)).length === 0) await notes.add(noteOf(WELCOME));
    return show();
  });
}
