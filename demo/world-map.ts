// A map made of nothing but the cities themselves: one dot each, brighter where they crowd, in Mercator's projection.
// Invariant: the picture is a function of the added cities, the size and the colours; it is made anew from the kept
// coordinates when one of those changes. A city that is added again replaces the one before.

import type { City } from './city.ts';
import { byId } from './dom.ts';

const NORTH = mercator(79);
const SOUTH = mercator(-56);
/** Height of the picture for a width of one. */
const ASPECT = (NORTH - SOUTH) / (2 * Math.PI);
/** How far from a dot a click still selects it, as a part of the width. */
const REACH = 0.02;
/** How long dots are gathered before they are painted together. */
const PAINT_MS = 60;

export class WorldMap {
  readonly #canvas = byId('map-canvas', HTMLCanvasElement);
  readonly #marker = byId('map-marker', HTMLElement);
  readonly #onChoose: (id: number) => void;
  readonly #context: CanvasRenderingContext2D | null;
  #image: ImageData | undefined;
  #ids = new Uint32Array(1024);
  /** The index of each city in the lists. */
  readonly #places = new Map<number, number>();
  /** For each city: across and down in parts of the width, then population. */
  #points = new Float32Array(3 * 1024);
  #count = 0;
  #timer: ReturnType<typeof setTimeout> | undefined;

  constructor(onChoose: (id: number) => void) {
    this.#onChoose = onChoose;
    this.#context = this.#canvas.getContext('2d');
    this.#canvas.addEventListener('click', (event) => this.#pick(event));
    new ResizeObserver(() => this.#resize()).observe(this.#canvas);
    matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => this.#redraw());
  }

  get size(): number {
    return this.#count;
  }

  put(cities: Iterable<City>): void {
    const colour = this.#colour();
    let hasChanged = false;
    for (const city of cities) {
      const known = this.#places.get(city.id);
      if (known !== undefined) {
        // Only its size may have changed.
        hasChanged ||= this.#points[3 * known + 2] !== Math.fround(city.population);
        this.#points[3 * known + 2] = city.population;
        continue;
      }
      if (this.#count === this.#ids.length) this.#grow();
      const at = this.#count++;
      this.#ids[at] = city.id;
      this.#places.set(city.id, at);
      this.#points.set([across(city), down(city), city.population], 3 * at);
      this.#plot(at, colour);
    }
    if (hasChanged) this.#redraw();
    else this.#paintSoon();
  }

  remove(ids: Iterable<number>): void {
    let hasChanged = false;
    for (const id of ids) {
      const at = this.#places.get(id);
      if (at === undefined) continue;
      const last = --this.#count;
      const moved = this.#ids[last] as number;
      this.#ids[at] = moved;
      this.#places.set(moved, at);
      this.#places.delete(id);
      this.#points.copyWithin(3 * at, 3 * last, 3 * last + 3);
      hasChanged = true;
    }
    if (hasChanged) this.#redraw();
  }

  clear(): void {
    this.#count = 0;
    this.#places.clear();
    this.#redraw();
  }

  /** Draws a ring around one city. */
  mark(city: City | undefined): void {
    this.#marker.hidden = city === undefined;
    if (city === undefined) return;
    this.#marker.style.setProperty('left', `${100 * across(city)}%`);
    this.#marker.style.setProperty('top', `${(100 * down(city)) / ASPECT}%`);
  }

  #pick(event: MouseEvent): void {
    const { left, top, width } = this.#canvas.getBoundingClientRect();
    const [x, y] = [(event.clientX - left) / width, (event.clientY - top) / width];
    let best = -1;
    let bestWeight = 0;
    for (let i = 0; i < this.#count; i += 1) {
      const distance = Math.hypot((this.#points[3 * i] as number) - x, (this.#points[3 * i + 1] as number) - y);
      if (distance > REACH) continue;
      // A click near a large city selects the large city.
      const weight = Math.sqrt(1 + (this.#points[3 * i + 2] as number)) / (0.001 + distance);
      if (weight > bestWeight) [best, bestWeight] = [i, weight];
    }
    if (best >= 0) this.#onChoose(this.#ids[best] as number);
  }

  #grow(): void {
    const [ids, points] = [this.#ids, this.#points];
    this.#ids = new Uint32Array(2 * ids.length);
    this.#ids.set(ids);
    this.#points = new Float32Array(2 * points.length);
    this.#points.set(points);
  }

  #resize(): void {
    const width = Math.round(this.#canvas.clientWidth * Math.min(2, devicePixelRatio));
    if (width === 0 || width === this.#canvas.width) return;
    this.#canvas.width = width;
    this.#canvas.height = Math.round(width * ASPECT);
    this.#redraw();
  }

  #redraw(): void {
    this.#image = this.#context?.createImageData(this.#canvas.width, this.#canvas.height);
    const colour = this.#colour();
    for (let i = 0; i < this.#count; i += 1) this.#plot(i, colour);
    this.#paintSoon();
  }

  #paintSoon(): void {
    this.#timer ??= setTimeout(() => {
      this.#timer = undefined;
      if (this.#image !== undefined) this.#context?.putImageData(this.#image, 0, 0);
    }, PAINT_MS);
  }

  /** Adds one dot: a pixel for a town, a square for a city of millions. */
  #plot(index: number, [red, green, blue]: Colour): void {
    const image = this.#image;
    if (image === undefined) return;
    const { width, height, data } = image;
    const population = this.#points[3 * index + 2] as number;
    const size = Math.max(1, Math.round((width / 700) * (population > 2e6 ? 3 : population > 2e5 ? 2 : 1)));
    const strength = population > 2e5 ? 255 : population > 2e4 ? 120 : 55;
    const left = Math.round((this.#points[3 * index] as number) * width - size / 2);
    const top = Math.round((this.#points[3 * index + 1] as number) * width - size / 2);
    for (let y = Math.max(0, top); y < Math.min(height, top + size); y += 1) {
      for (let x = Math.max(0, left); x < Math.min(width, left + size); x += 1) {
        const at = 4 * (y * width + x);
        data[at] = red;
        data[at + 1] = green;
        data[at + 2] = blue;
        data[at + 3] = Math.min(255, (data[at + 3] as number) + strength);
      }
    }
  }

  /** The colour of the dots, which the style sheet gives to the canvas as `rgb(r, g, b)`. */
  #colour(): Colour {
    const [red = 0, green = 0, blue = 0] = (getComputedStyle(this.#canvas).color.match(/[\d.]+/g) ?? []).map(Number);
    return [red, green, blue];
  }
}

type Colour = readonly [red: number, green: number, blue: number];

function mercator(latitude: number): number {
  return Math.log(Math.tan(Math.PI / 4 + (latitude * Math.PI) / 360));
}

function across({ longitude }: City): number {
  return (longitude + 180) / 360;
}

function down({ latitude }: City): number {
  return (NORTH - mercator(latitude)) / (2 * Math.PI);
}
