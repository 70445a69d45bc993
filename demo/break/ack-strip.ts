// Acknowledgements along time, one line each, and the time when the worker was ended: the gap after it is the pause.
// Invariant: drawn from the times at which writes resolved, from the first to the last.

import { change, svg } from '../../js/src/inspector/live/svg.ts';
import { byId, setText } from '../dom.ts';
import { formatDuration } from '../format.ts';

const WIDTH = 600;
const HEIGHT = 40;

export class AckStrip {
  readonly #picture = byId('kill-strip', SVGSVGElement);
  readonly #text = byId('kill-strip-text', HTMLElement);
  readonly #times: number[] = [];

  constructor() {
    this.#picture.replaceChildren();
    setText(this.#text, '');
  }

  /** A write resolved. */
  add(atMs: number): void {
    this.#times.push(atMs);
  }

  draw(killedMs: number): void {
    const first = this.#times[0] ?? 0;
    const whole = Math.max(1, (this.#times.at(-1) ?? 0) - first);
    const at = (ms: number): number => ((ms - first) / whole) * WIDTH;
    change(this.#picture, { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, preserveAspectRatio: 'none' });
    const path = this.#times.map((ms) => `M${at(ms).toFixed(1)} 8V${HEIGHT}`).join('');
    const x = at(killedMs);
    this.#picture.replaceChildren(
      svg('path', { d: path, class: 'ack' }),
      svg('line', { x1: x, x2: x, y1: 0, y2: HEIGHT, class: 'kill' }),
    );
    setText(this.#text, `Each line is an acknowledged write, over ${formatDuration(whole)}; the tall one is the kill.`);
  }
}
