import { useState } from 'react';
import { uuid7 } from 'varve/collections';
import { useLive, useStore } from 'varve/react';

/** `['open', id]` or `['done', id]`: the tasks of one list are one range of keys. */
type Key = [list: 'open' | 'done', id: string];

const other = (list: Key[0]): Key[0] => (list === 'open' ? 'done' : 'open');

export function Todos() {
  const db = useStore<Key, string>('todos');
  const [list, setList] = useState<Key[0]>('open');
  const tasks = useLive(db, { prefix: [list] }, [list]);
  const count = useLive(db, { prefix: ['open'], as: 'count' }, []);
  if (db === undefined || tasks === undefined) return <p>Loading</p>;

  const add = async (form: HTMLFormElement) => {
    const input = form.querySelector('input')!;
    const text = input.value;
    form.reset();
    try {
      await db.set(['open', uuid7()], text);
    } catch (error) {
      input.value ||= text; // a task that was not saved can be saved again
      throw error;
    }
  };
  // Both or neither: no task is lost on its way to the other list.
  const move = ([from, id]: Key, text: string) =>
    db
      .batch()
      .delete([from, id])
      .set([other(from), id], text)
      .commit();

  return (
    <main>
      <h1>{count} to do</h1>
      <form
        onSubmit={(event) => {
          event.preventDefault();
          void add(event.currentTarget);
        }}
      >
        <input name="text" aria-label="New task" autoComplete="off" required />
        <button type="submit">Add</button>
      </form>
      <label>
        <input type="checkbox" checked={list === 'done'} onChange={() => setList(other(list))} />
        Show what is done
      </label>
      <ul>
        {tasks.map(([key, text]) => (
          <li key={key[1]}>
            {text}{' '}
            <button type="button" onClick={() => move(key, text)}>
              {key[0] === 'open' ? 'Done' : 'Not done'}
            </button>
          </li>
        ))}
      </ul>
    </main>
  );
}
