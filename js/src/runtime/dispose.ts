/**
 * Symbols that not every supported browser has yet.
 *
 * Invariant: a symbol made here is the one that later polyfills and TypeScript's own helpers look for.
 */

/** `Symbol.asyncDispose`, for `await using`; a registered stand-in where the browser has none. */
export const asyncDispose: typeof Symbol.asyncDispose =
  Symbol.asyncDispose ?? (Symbol.for('Symbol.asyncDispose') as typeof Symbol.asyncDispose);

/** `Symbol.dispose`, for `using`, likewise. */
export const dispose: typeof Symbol.dispose = Symbol.dispose ?? (Symbol.for('Symbol.dispose') as typeof Symbol.dispose);
