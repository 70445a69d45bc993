/**
 * One case, looked at: rates as bars, the distribution of latencies, throughput over time, and the table of all figures.
 *
 * Invariant: every figure that a chart draws stands in the table below it. The case that was chosen stays while rows come.
 */

import { type Case, casesOf, nameOf } from '../core/cases.ts';
import { duration, rate } from '../core/figures.ts';
import type { Row } from '../core/rows.ts';
import { type Bar, BarsChart } from './bars-chart.ts';
import { isRound } from './chart-kit.ts';
import { byId, make } from './dom.ts';
import { latencyCurve, shareText } from './latency-curve.ts';
import { LifeCharts } from './life-charts.ts';
import { LinesChart } from './lines-chart.ts';
import { lookOf } from './palette.ts';
import { caseTable } from './row-table.ts';
import { bestPeersIn } from './standing.ts';
import { timelineOf } from './throughput.ts';

/** The view of one case of a result. */
export class CaseView {
  readonly #section = byId('case');
  readonly #select = byId<HTMLSelectElement>('case-select');
  readonly #rates: BarsChart;
  readonly #latencies = new LinesChart({
    title: 'Latency distribution',
    note: 'what share of the calls took no longer',
    x: { title: 'share of calls', logarithmic: true, text: shareText, isShown: isPower },
    y: { title: 'latency', logarithmic: true, text: duration, isShown: isRound },
  });
  readonly #throughput = new LinesChart({
    title: 'Throughput over time',
    note: 'the middle round of each engine',
    x: { title: 'seconds', logarithmic: false, text: (figure) => `${Number(figure.toFixed(3))} s`, min: 0 },
    y: { title: 'a second', logarithmic: true, text: rate, isShown: isRound },
  });
  readonly #lives = new LifeCharts();
  #cases: readonly Case[] = [];
  #chosen: string | undefined;

  constructor() {
    const box = make('input', { attributes: { type: 'checkbox', checked: '' } });
    const scale = make('label', { class: 'tool' }, box, ' logarithmic');
    this.#rates = new BarsChart({
      title: 'Rate of each engine',
      note: 'the median of the rounds, a line from the lowest to the highest',
      axis: 'a second',
      text: rate,
      tools: [scale],
    });
    box.addEventListener('change', () => {
      this.#rates.logarithmic = box.checked;
    });
    const charts = byId('case-charts');
    charts.append(this.#rates.frame.element, this.#latencies.frame.element, this.#throughput.frame.element);
    charts.append(...this.#lives.elements);
    this.#select.addEventListener('change', () => {
      this.#chosen = this.#select.value;
      this.#draw();
    });
    byId('case-before').addEventListener('click', () => this.#step(-1));
    byId('case-after').addEventListener('click', () => this.#step(1));
  }

  /** Shows the cases of a result; while a run goes on (`follow`), the newest. */
  show(rows: readonly Row[], follow: boolean): void {
    this.#cases = casesOf(rows);
    this.#section.hidden = this.#cases.length === 0;
    const last = rows.at(-1);
    const followed = follow ? this.#cases.find(({ rows: own }) => last !== undefined && own.includes(last)) : undefined;
    const chosen = this.#cases.find(({ key }) => key === this.#chosen) ?? followed ?? this.#cases[0];
    this.#select.replaceChildren(
      ...this.#cases.map((one) => make('option', { text: nameOf(one), attributes: { value: one.key } })),
    );
    this.#select.value = chosen?.key ?? '';
    this.#draw();
  }

  /** Goes to a case by its key. */
  go(key: string): void {
    this.#chosen = key;
    this.#select.value = key;
    this.#draw();
    this.#section.scrollIntoView({ block: 'start' });
    this.#select.focus({ preventScroll: true });
  }

  /** Forgets the choice: another result comes. */
  reset(): void {
    this.#chosen = undefined;
  }

  #step(by: number): void {
    const { length } = this.#cases;
    const index = (this.#select.selectedIndex + by + length) % length;
    this.#chosen = this.#cases[index]?.key;
    this.#select.selectedIndex = index;
    this.#draw();
  }

  #draw(): void {
    const one = this.#cases.find(({ key }) => key === this.#select.value);
    if (one === undefined) return;
    byId('case-title').textContent = one.title;
    const peers = bestPeersIn(one.rows);
    const sorted = [...one.rows].sort((a, b) => b.opsPerSecond - a.opsPerSecond);
    const words = sorted.map(({ engine, opsPerSecond }) => `${engine} ${rate(opsPerSecond)}`).join(', ');
    this.#rates.show(
      sorted.map((row) => barOf(row, peers.has(row))),
      `A second, quickest first: ${words}.`,
    );
    const slow = sorted.map(({ engine, p50, p99 }) => `${engine} ${duration(p50)}, ${duration(p99)}`).join('; ');
    this.#latencies.show(
      one.rows.map((row) => ({ engine: row.engine, points: latencyCurve(row) })),
      `Median and 99th percentile: ${slow}.`,
    );
    this.#throughput.show(
      one.rows
        // A life has charts of its own, over its steps.
        .filter(({ life }) => life === undefined)
        .map((row) => ({ engine: row.engine, points: timelineOf(row) }))
        .filter(({ points }) => points.length > 1),
      `Medians of the rounds, a second: ${words}.`,
    );
    this.#lives.show(one.rows);
    byId('case-table').replaceChildren(caseTable(one));
  }
}

function barOf(row: Row, isBestPeer: boolean): Bar {
  const { engine, role, opsPerSecond, rounds } = row;
  return {
    label: `${engine}${isBestPeer ? ' (best peer)' : role === 'floor' ? ' (floor)' : ''}`,
    value: opsPerSecond,
    low: Math.min(...rounds),
    high: Math.max(...rounds),
    colour: () => lookOf(engine).colour,
    hollow: role === 'floor',
    strong: role === 'varve' || isBestPeer,
  };
}

function isPower(figure: number): boolean {
  return Math.abs(Math.log10(figure) - Math.round(Math.log10(figure))) < 1e-9;
}
