/** Exports and imports, which a store loads at its first export or import: few programs need them. */

export { exportTo } from './export.ts';
export { importFrom } from './import.ts';
