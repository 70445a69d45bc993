/**
 * The part of tape that the suite of abstract-level uses, for Node and for pages: each of its tests becomes a test of the caller.
 *
 * Invariant: a test passes only if all its assertions hold, and there are as many as it planned.
 */

/** Takes a test. Rejects with the first assertion that failed. */
type Register = (name: string, run: () => Promise<void>) => void;

/** The `test` of tape. */
export function tape(register: Register): (name: string, body: (t: Assertions) => unknown) => void {
  return (name, body) => register(name, () => new Assertions().run(body));
}

class Assertions {
  readonly #failures: Error[] = [];
  #planned: number | undefined;
  #count = 0;
  #end: (() => void) | undefined;

  async run(body: (t: Assertions) => unknown): Promise<void> {
    const ended = new Promise<void>((resolve) => {
      this.#end = resolve;
    });
    const returned = body(this);
    await (returned instanceof Promise ? returned : ended);
    if (this.#planned !== undefined && this.#planned !== this.#count)
      this.#failures.push(new Error(`${this.#planned} assertions were planned, ${this.#count} were made.`));
    this.#end = undefined;
    if (this.#failures[0] !== undefined) throw this.#failures[0];
  }

  plan(count: number): void {
    this.#planned = count;
  }

  end(): void {
    this.#end?.();
  }

  ok(isTrue: unknown, message: unknown = 'ok'): void {
    if (this.#end === undefined) throw new Error(`An assertion after the end of its test: ${message}`);
    if (!isTrue) this.#failures.push(message instanceof Error ? message : new Error(`Not so: ${message}`));
    this.#count++;
    if (this.#count === this.#planned) this.end();
  }

  pass(message?: unknown): void {
    this.ok(true, message);
  }

  fail(message?: unknown): void {
    this.ok(false, message);
  }

  is(actual: unknown, wanted: unknown, message = ''): void {
    this.ok(Object.is(actual, wanted), `${message}: ${String(actual)}, wanted ${String(wanted)}`);
  }

  isNot(actual: unknown, unwanted: unknown, message = ''): void {
    this.ok(!Object.is(actual, unwanted), `${message}: ${String(actual)}`);
  }

  same(actual: unknown, wanted: unknown, message = ''): void {
    this.ok(isSame(actual, wanted), `${message}: ${JSON.stringify(actual)}, wanted ${JSON.stringify(wanted)}`);
  }

  throws(run: () => void, isWanted: (error: unknown) => boolean): void {
    try {
      run();
    } catch (error) {
      this.ok(isWanted(error), error);
      return;
    }
    this.fail('nothing was thrown');
  }

  doesNotThrow(run: () => void): void {
    run();
    this.pass();
  }
}

/** Whether they are equal, with their types and all their parts. */
function isSame(a: unknown, b: unknown): boolean {
  if (Object.is(a, b)) return true;
  if (typeof a !== 'object' || typeof b !== 'object' || a === null || b === null) return false;
  if (Object.getPrototypeOf(a) !== Object.getPrototypeOf(b)) return false;
  if (a instanceof Date) return a.getTime() === (b as Date).getTime();
  const [parts, others] = [Object.entries(a), Object.entries(b)];
  return (
    parts.length === others.length &&
    parts.every(([name, part]) => Object.hasOwn(b, name) && isSame(part, (b as Record<string, unknown>)[name]))
  );
}
