/**
 * A chart of ratios as a list: assistive technology reads its figures, and its lines wrap on a phone.
 *
 * Invariant: nothing is said by colour or length alone: every bar has its figure beside it. The scale is logarithmic, so a bar
 * of some thousands does not flatten the others.
 */

import type { Bar, BarGroup } from '../core/everyday.ts';
import { type Axis, axisOf } from '../core/figures.ts';
import { make } from './dom.ts';

export function chartOf(title: string, groups: readonly BarGroup[]): HTMLElement {
  const axis = axisOf(groups.flatMap(({ bars }) => bars.map(({ ratio }) => ratio)));
  const ticks = axis.ticks.map((value) =>
    at(make('small', {}, value < 1 ? `1/${1 / value}` : `${value}x`), axis, value),
  );
  const scale = groupOf('', lineOf('', axis, ...ticks));
  scale.ariaHidden = 'true';
  const parts = groups.map(({ name, bars }) => {
    return groupOf(name, ...bars.map((bar) => lineOf(bar.text, axis, barOf(bar, axis), at(make('s'), axis, 1))));
  });
  return make('figure', { class: 'chart' }, make('figcaption', {}, title), make('ul', {}, scale, ...parts));
}

function groupOf(name: string, ...lines: HTMLElement[]): HTMLElement {
  return make('li', {}, make('b', {}, name), make('ul', {}, ...lines));
}

function lineOf(text: string, { ticks }: Axis, ...marks: HTMLElement[]): HTMLElement {
  const track = make('div', { class: 'track', 'aria-hidden': 'true' }, ...marks);
  track.style.setProperty('--decades', String(ticks.length - 1));
  return make('li', {}, track, make('span', {}, text));
}

function barOf({ ratio, look }: Bar, axis: Axis): HTMLElement {
  const bar = at(make('i', { class: look ?? '' }), axis, Math.min(ratio, 1));
  bar.style.width = `${100 * Math.abs(axis.share(ratio) - axis.share(1))}%`;
  return bar;
}

function at<T extends HTMLElement>(mark: T, axis: Axis, value: number): T {
  mark.style.left = `${100 * axis.share(value)}%`;
  return mark;
}
