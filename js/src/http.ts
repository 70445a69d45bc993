/**
 * The package `varve/http`: a store behind a fetch handler, on every runtime that has `Request` and `Response`.
 *
 * Invariant: nothing here knows a server. What leaves the handler is what the store's API would have answered, or an error
 * with its code.
 */

export { type BearerTokens, bearer, secretsEqual } from './http/bearer.ts';
export { createHandler } from './http/handler.ts';
export type { Problem } from './http/problem.ts';
export type {
  Access,
  CorsOptions,
  Handler,
  HttpBatch,
  HttpLimits,
  HttpOptions,
  HttpStore,
} from './http/types.ts';
