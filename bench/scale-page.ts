/** The page of the `scale` run: `?pairs=2000000`. It shows what its worker tells, and hands it to the command line. */

import type { ScaleEvent, ScalePlan } from './scale/phases.ts';

const { varveBenchListener: listen } = globalThis as { varveBenchListener?: (event: ScaleEvent) => void };
const step = document.getElementById('step');
const result = document.getElementById('result');
const plan: ScalePlan = { pairs: Number(new URLSearchParams(location.search).get('pairs') ?? 2_000_000) };

const worker = new Worker(new URL('./scale-worker.js', import.meta.url), { type: 'module' });
worker.onmessage = ({ data }: MessageEvent<ScaleEvent>) => {
  if (step !== null && data.type === 'progress') step.textContent = data.text;
  if (step !== null && data.type === 'ended') step.textContent = data.error ?? 'Done.';
  if (result !== null && data.type === 'row') result.textContent += `${JSON.stringify(data.row)}\n`;
  listen?.(data);
};
worker.onerror = ({ message }) => listen?.({ type: 'ended', error: message });
worker.postMessage(plan);
