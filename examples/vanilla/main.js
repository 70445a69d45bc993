import { open } from 'varve';
import { uuid7 } from 'varve/collections';

const db = await open('notes');

const form = document.querySelector('form');
const list = document.querySelector('ul');

form.addEventListener('submit', async (event) => {
  event.preventDefault();
  const input = form.elements.text;
  const text = input.value;
  form.reset();
  try {
    await db.set(['note', uuid7()], text); // ids that sort by time
  } catch (error) {
    input.value ||= text; // a note that was not saved can be saved again
    throw error;
  }
});
form.querySelector('button').disabled = false;

// The newest notes: once now, and again after each change, whichever tab made it.
const notes = db.live({ prefix: ['note'], reverse: true, limit: 50 }, { initial: [] });
notes.subscribe((entries) => list.replaceChildren(...entries.map(itemOf)));

function itemOf([key, text]) {
  const button = document.createElement('button');
  button.textContent = 'Delete';
  button.addEventListener('click', () => db.delete(key));
  const item = document.createElement('li');
  item.append(text, ' ', button);
  return item;
}
