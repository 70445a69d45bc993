/** The suite of abstract-level, which has no types. */

declare module 'abstract-level/test' {
  import type { AbstractDatabaseOptions } from 'abstract-level';
  import type { tape } from './tape.ts';

  function suite(options: {
    test: ReturnType<typeof tape>;
    factory: (options?: AbstractDatabaseOptions<string, string>) => object;
  }): void;
  export = suite;
}
