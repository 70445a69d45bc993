/**
 * The package `varve/http`: a store behind a fetch handler, on every runtime that has `Request` and `Response`.
 *
 * Invariant: nothing here depends on a particular server. The handler responds with the result that the store's API would return,
 * or with an error and its code.
 */

export { type BearerTokens, bearer, secretsEqual } from './http/bearer.ts';
export { createHandler } from './http/handler.ts';
export type { Problem } from './http/problem.ts';
export type * from './http/types.ts';
