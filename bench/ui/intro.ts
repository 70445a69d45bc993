/** The first screen: what Varve is compared with, and what the choice comes to. */

import type { Role } from '../core/engine.ts';
import { ACCESSES } from '../core/options.ts';
import type { Plan } from '../core/plan.ts';
import { stepsOf } from '../core/runner.ts';
import { TAB_SUITE } from '../core/workloads.ts';
import { ENGINES } from '../peers/list.ts';
import { make } from './dom.ts';
import { lookOf } from './palette.ts';
import { onTheme } from './theme.ts';

const TITLES: Readonly<Record<Role, string>> = {
  varve: 'Varve, in each way it can be used',
  peer: 'Peers, each as its documentation recommends',
  floor: 'Floors, which no store can be quicker than',
};

/** Lists the engines by their role. */
export function comparedWith(list: HTMLElement): void {
  for (const [role, title] of Object.entries(TITLES)) {
    const chips = ENGINES.filter((engine) => engine.role === role).map(({ name, about, version }) => {
      const chip = make('span', { class: 'chip', attributes: { title: about } }, make('i'), name);
      if (version !== undefined) chip.append(make('small', { text: version }));
      const colour = (): void => chip.style.setProperty('--engine', lookOf(name).colour);
      colour();
      onTheme(colour);
      return chip;
    });
    list.append(make('div', { class: role }, make('dt', { text: title }), make('dd', {}, ...chips)));
  }
}

/** What a plan comes to, in one line. */
export function planText(plan: Plan): string {
  const engines = ENGINES.filter(({ name }) => plan.engines.includes(name));
  const steps = stepsOf(plan, engines, ACCESSES);
  const hasTabs = plan.suites.includes(TAB_SUITE.name);
  if (steps === 0 && !hasTabs) return 'Nothing to run: choose a suite, an engine that can run it, and a way in.';
  const many = (count: number, one: string, several: string): string => `${count} ${count === 1 ? one : several}`;
  const parts = [
    many(plan.suites.length, 'suite', 'suites'),
    many(plan.engines.length, 'engine', 'engines'),
    many(plan.accesses.length, 'way in', 'ways in'),
    many(steps, 'round', 'rounds'),
  ];
  const changed = Object.keys(plan.custom).length > 0 || plan.scale !== 1;
  return `${plan.mode === 'quick' ? 'Quick' : 'Full'} run: ${parts.join(', ')}${changed ? ', with sizes and options of yours' : ''}.`;
}
