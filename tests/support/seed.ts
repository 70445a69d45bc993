// The seed of a run of tests: `VARVE_SEED`, or a fresh one. It is printed, so that a failure can be reproduced.

/** The seed for the tests of a file. The name of the file is the argument of `npm run test:<suite> --`. */
export function runSeed(suite: 'js' | 'browser' | 'engines' | 'runtimes', file: string): number {
  const named = process.env['VARVE_SEED'];
  const seed = named === undefined ? Math.floor(Math.random() * 1_000_000) : Number(named);
  if (!Number.isInteger(seed)) throw new Error(`VARVE_SEED is an integer, not ${named}.`);
  console.log(`seed ${seed}; once more: VARVE_SEED=${seed} npm run test:${suite} -- ${file}`);
  return seed;
}

/** A number from the environment, or a default. */
export function numberFrom(variable: string, otherwise: number): number {
  const value = Number(process.env[variable] ?? otherwise);
  if (!(Number.isInteger(value) && value >= 0)) throw new Error(`${variable} is an integer from 0.`);
  return value;
}
