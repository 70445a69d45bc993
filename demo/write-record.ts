// The last half minute of writes as a varve: one thin layer for each look; more writes make a thicker layer.
// Invariant: the newest layer is at the right, and the tallest one there is fills the height.

import { byId, setText } from './dom.ts';
import { formatCount } from './format.ts';

const LAYERS = 120;
const SVG = 'http://www.w3.org/2000/svg';

export class WriteRecord {
  readonly #picture = byId('engine-record', SVGSVGElement);
  readonly #text = byId('engine-record-text', HTMLElement);
  readonly #layers: SVGRectElement[] = [];
  readonly #rates: number[] = new Array<number>(LAYERS).fill(0);
  #sequence: number | undefined;
  #atMs = 0;

  constructor() {
    this.#picture.setAttribute('viewBox', `0 0 ${LAYERS} 1`);
    for (let i = 0; i < LAYERS; i += 1) {
      const layer = document.createElementNS(SVG, 'rect');
      layer.setAttribute('x', String(i + 0.1));
      layer.setAttribute('width', '0.8');
      this.#layers.push(layer);
    }
    this.#picture.replaceChildren(...this.#layers);
  }

  /** Adds a layer: the amount written since the one before. */
  add(sequence: number): void {
    const nowMs = performance.now();
    const before = this.#sequence ?? sequence;
    const rate = Math.max(0, ((sequence - before) / Math.max(1, nowMs - this.#atMs)) * 1000);
    this.#sequence = sequence;
    this.#atMs = nowMs;
    this.#rates.shift();
    this.#rates.push(rate);
    this.#draw();
  }

  #draw(): void {
    const most = Math.max(...this.#rates);
    this.#layers.forEach((layer, i) => {
      const height = most === 0 ? 0 : (this.#rates[i] as number) / most;
      layer.setAttribute('y', String(1 - height));
      layer.setAttribute('height', String(height));
    });
    const now = this.#rates.at(-1) ?? 0;
    setText(this.#text, `${formatCount(now)} entries/s now, ${formatCount(most)} at most`);
  }
}
