/**
 * A life over its steps: rate, p99, disk and memory of each engine.
 *
 * Invariant: points are the samples of the row, none joined and none left out. A figure that nobody tells has no chart.
 */

import { bytes, duration, rate } from '../core/figures.ts';
import type { Row } from '../core/rows.ts';
import type { LifeSample } from '../suites/lives/life.ts';
import { storyText } from '../suites/lives/story.ts';
import { isRound } from './chart-kit.ts';
import { type Axis, LinesChart } from './lines-chart.ts';
import { lifePoints } from './throughput.ts';

interface Figure {
  readonly title: string;
  readonly note: string;
  readonly axis: string;
  readonly of: (sample: LifeSample) => number | undefined;
  readonly text: (figure: number) => string;
}

const FIGURES: readonly Figure[] = [
  {
    ...{ title: 'Rate over the steps', note: 'of each window between two samples', axis: 'steps a second' },
    ...{ of: ({ stepsPerSecond }) => stepsPerSecond, text: rate },
  },
  {
    ...{ title: 'p99 over the steps', note: 'of a step, or of the mean of a group of steps', axis: 'latency' },
    ...{ of: ({ p99 }) => p99, text: duration },
  },
  {
    ...{ title: 'Disk over the steps', note: 'the most that lay there in each window', axis: 'bytes of files' },
    ...{ of: ({ disk }) => disk?.bytes, text: bytes },
  },
  {
    ...{ title: 'Memory over the steps', note: 'as the store tells', axis: 'bytes held' },
    ...{ of: ({ memoryBytes }) => memoryBytes, text: bytes },
  },
];

const STEPS: Axis = { title: 'steps', logarithmic: false, text: rate, min: 0 };

/** The charts of a life. */
export class LifeCharts {
  readonly #charts = FIGURES.map((figure) => ({
    figure,
    chart: new LinesChart({
      title: figure.title,
      note: figure.note,
      x: STEPS,
      y: { title: figure.axis, logarithmic: true, text: figure.text, isShown: isRound },
    }),
  }));

  get elements(): HTMLElement[] {
    return this.#charts.map(({ chart }) => chart.frame.element);
  }

  /** Shows the lives among these rows; hides everything where there are none. */
  show(rows: readonly Row[]): void {
    const told = rows.flatMap(({ engine, life }) => (life === undefined ? [] : [`${engine}: ${storyText(life)}`]));
    for (const { figure, chart } of this.#charts) {
      const lines = rows.map((row) => ({ engine: row.engine, points: lifePoints(row, figure.of) }));
      chart.show(lines, `${told.join('. ')}.`);
    }
  }
}
