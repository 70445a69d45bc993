/**
 * The motion in the picture: drops that fall in, a memtable that sinks and becomes a table, tables that sink and merge.
 * Invariant: motion adds nothing to what the picture shows; where the visitor wants none, or the page is not visible, there is none.
 * At most `MOVING_MAX` things move at once.
 */

import { mayMove } from '../dom.ts';
import type { Box } from './layout.ts';
import { place, svg } from './svg.ts';

const MOVING_MAX = 48;
const FALL_MS = 900;
const DROP_MS = 500;
/** How much longer everything takes in slow motion. */
const SLOW = 4;

export class Motion {
  readonly #layer: SVGGElement;
  /** Everything takes longer. */
  isSlow = false;

  /** @param layer where moving things are drawn, above the rest */
  constructor(layer: SVGGElement) {
    this.#layer = layer;
  }

  /** Something sinks from one place to another, and disappears there. */
  sink(from: Box, to: Box, kind: string, delayMs = 0): void {
    if (!this.#may) return;
    const ghost = svg('rect', { ...place(from), class: `moving ${kind}`, rx: 2 });
    const scale = `scale(${to.width / Math.max(1, from.width)}, ${to.height / Math.max(1, from.height)})`;
    const way = `translate(${to.x - from.x}px, ${to.y - from.y}px) ${scale}`;
    this.#run(
      ghost,
      [
        { transform: 'none', opacity: 1 },
        { transform: way, opacity: 1, offset: 0.85 },
        { transform: way, opacity: 0 },
      ],
      { duration: FALL_MS, delay: delayMs, easing: 'cubic-bezier(0.5, 0, 0.4, 1)' },
    );
  }

  /** A place lights up: work happened there. */
  flash(box: Box, kind: string): void {
    if (!this.#may) return;
    const light = svg('rect', { ...place(box), class: `moving flash ${kind}`, rx: 4 });
    this.#run(light, [{ opacity: 0 }, { opacity: 0.8, offset: 0.3 }, { opacity: 0 }], { duration: FALL_MS });
  }

  /** A drop falls from above to a height. */
  drop(x: number, fromY: number, toY: number, delayMs: number): void {
    if (!this.#may) return;
    const drop = svg('circle', { cx: x, cy: fromY, r: 4, class: 'moving drop' });
    const way = `translate(0, ${toY - fromY}px)`;
    this.#run(
      drop,
      [
        { transform: 'none', opacity: 0 },
        { transform: 'none', opacity: 1, offset: 0.1 },
        { transform: way, opacity: 1, offset: 0.95 },
        { transform: way, opacity: 0 },
      ],
      { duration: DROP_MS, delay: delayMs, easing: 'ease-in' },
    );
  }

  /** Ends all motion. */
  clear(): void {
    this.#layer.replaceChildren();
  }

  get #may(): boolean {
    return mayMove() && document.visibilityState === 'visible' && this.#layer.childElementCount < MOVING_MAX;
  }

  #run(target: SVGElement, frames: Keyframe[], timing: KeyframeAnimationOptions & { duration: number }): void {
    this.#layer.append(target);
    const slow = this.isSlow ? SLOW : 1;
    const { duration, delay = 0 } = timing;
    const animation = target.animate(frames, {
      ...timing,
      duration: duration * slow,
      delay: delay * slow,
      fill: 'both',
    });
    const gone = (): void => target.remove();
    animation.finished.then(gone, gone);
  }
}
