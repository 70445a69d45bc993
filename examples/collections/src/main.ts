import type { Key, Snapshot } from 'varve';
import { db, notes, search } from './notes.ts';

const input = document.querySelector<HTMLInputElement>('[type=search]')!;
const form = document.querySelector('form')!;
const list = document.querySelector('ul')!;

/** The notes that the search finds, or the newest ones. */
const found = (text: string) => (view: Snapshot<Key, unknown>) =>
  text.trim() === '' ? notes.in(view).find({ reverse: true, limit: 20 }).toArray() : search(text, notes.in(view));

await notes.ready();
// Runs again after each change of the collection, whichever tab made it, and for each new text.
const results = db.live(found(input.value), { prefix: ['notes'], initial: [] });
results.subscribe((shown) => {
  list.replaceChildren(...shown.map(({ text }) => Object.assign(document.createElement('li'), { textContent: text })));
});
input.addEventListener('input', () => results.update(found(input.value)));

form.addEventListener('submit', async (event) => {
  event.preventDefault();
  const entry = form.querySelector('input')!;
  const text = entry.value;
  form.reset();
  try {
    await notes.insert({ text });
  } catch (error) {
    entry.value ||= text; // a note that was not saved can be saved again
    throw error;
  }
});
form.querySelector('button')!.disabled = false;
