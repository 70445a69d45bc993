// An experiment: a button that runs it, and a timeline of what happened.
// Invariant: each has its own stores, which it deletes when it begins; the cities are never touched. One run at a time.

import { sentence } from '../../js/src/inspector/errors.ts';
import { byId, setText } from '../dom.ts';
import { Timeline } from './timeline.ts';

/** The work of an experiment; it reports each step. */
export type Run = (timeline: Timeline) => Promise<void>;

/** Wires the experiment whose parts have ids that begin with `id`. */
export function experiment(id: string, run: Run): void {
  const button = byId(`${id}-run`, HTMLButtonElement);
  const panel = byId(id, HTMLElement);
  const timeline = new Timeline(byId(`${id}-timeline`, HTMLOListElement));
  const label = button.textContent ?? '';
  button.addEventListener('click', async () => {
    button.disabled = true;
    setText(button, 'Running');
    panel.dataset['state'] = 'running';
    timeline.restart();
    try {
      await run(timeline);
      panel.dataset['state'] = 'done';
    } catch (error) {
      timeline.add('wrong', `The experiment did not end as it should: ${sentence(error)}`);
      panel.dataset['state'] = 'failed';
    }
    setText(button, `${label} again`);
    button.disabled = false;
    button.focus();
  });
}
