/** What a command says while something takes long: one line that is written over in a terminal, and now and then a line elsewhere. */

const SILENCE_MS = 30_000;

/** The line of one command. */
export class ProgressLine {
  readonly #out: Pick<NodeJS.WriteStream, 'isTTY' | 'write'>;
  readonly #now: () => number;
  #since: number;

  constructor(out: Pick<NodeJS.WriteStream, 'isTTY' | 'write'> = process.stdout, now: () => number = Date.now) {
    this.#out = out;
    this.#now = now;
    this.#since = now();
  }

  /** Says where the work stands. */
  tell(text: string): void {
    if (this.#out.isTTY) {
      this.#out.write(`\r\u001b[K${text}\r`);
      return;
    }
    if (this.#now() - this.#since < SILENCE_MS) return;
    this.#since = this.#now();
    this.#out.write(`  ... ${text}\n`);
  }

  /** Something else was printed: nobody waits for a word. */
  rest(): void {
    this.#since = this.#now();
  }
}
