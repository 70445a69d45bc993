/** The page of the `scale` run: `?pairs=2000000`. It shows what its worker tells, and hands it to the command line. */

import { SCALE_COLUMNS, scaleCells } from '../suites/scale/cells.ts';
import type { ScaleEvent, ScalePlan, ScaleRow } from '../suites/scale/phases.ts';
import { byId, setText } from './dom.ts';
import { SortableTable } from './sortable-table.ts';

const { varveBenchListener: listen } = globalThis as { varveBenchListener?: (event: ScaleEvent) => void };
const plan: ScalePlan = { pairs: Number(new URLSearchParams(location.search).get('pairs') ?? 2_000_000) };
const rows: ScaleRow[] = [];
const WORDS: ReadonlySet<string> = new Set(['phase', 'more']);
const table = new SortableTable<ScaleRow>(
  {
    caption: 'The phases',
    columns: SCALE_COLUMNS.map((title, i) => ({
      title,
      text: (row) => scaleCells(row)[i] ?? '',
      words: WORDS.has(title),
      ...(title === 'operations' && { value: ({ ops }) => ops }),
      ...(title === 'seconds' && { value: ({ seconds }) => seconds }),
      ...(title === 'a second' && { value: ({ ops, seconds }) => (ops > 1 ? ops / seconds : undefined) }),
    })),
  },
  rows,
);

byId('plan').textContent =
  `${plan.pairs.toLocaleString('en')} pairs of 32 + 32 bytes through varve/synchronous in a worker, phase by phase. ` +
  'The address says how many: ?pairs=2000000.';
byId('result').append(table.element);

const newWorker = (): Worker => new Worker(new URL('./scale-worker.js', import.meta.url), { type: 'module' });
const worker = newWorker();
worker.onmessage = ({ data }: MessageEvent<ScaleEvent>) => hear(data);
worker.onerror = ({ message }) => hear({ type: 'ended', error: message });
byId('cancel').addEventListener('click', () => {
  hear({ type: 'ended', error: 'The run was cancelled.' });
  // What the worker that was ended has left.
  newWorker().postMessage('remove');
});
worker.postMessage(plan);

function hear(event: ScaleEvent): void {
  if (event.type === 'progress') setText(byId('step'), event.text);
  if (event.type === 'ended') {
    worker.terminate();
    byId('cancel').hidden = true;
    setText(byId('step'), event.error ?? 'Done.');
  }
  if (event.type === 'row') {
    rows.push(event.row);
    table.update(rows);
  }
  listen?.(event);
}
