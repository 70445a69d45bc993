/**
 * The output of the command: results on standard output, everything else on standard error.
 *
 * Invariant: with `--json`, standard output has JSON alone, one value a line, and standard error only the JSON of an error. Progress is
 * shown only to a person: on a terminal, without `--json`. A result that could not be written completely is an error.
 */

import { fstatSync, writeFileSync } from 'node:fs';
import { outputError } from './exit.ts';

const BUFFER_CHARS_MAX = 64 * 1024;
const PROGRESS_MS = 100;
const STDOUT = 1;

/** The output of one run. */
export class Output {
  /** Whether the output is for programs. */
  readonly isJson: boolean;
  #lines: string[] = [];
  #chars = 0;
  #progressAt = 0;
  #hasProgress = false;

  constructor(isJson: boolean) {
    this.isJson = isJson;
  }

  /** Prints a line of the result. */
  async line(text: string): Promise<void> {
    this.#lines.push(text);
    this.#chars += text.length;
    if (this.#chars > BUFFER_CHARS_MAX) await this.flush();
  }

  /** Prints the result: as JSON for programs, in lines for people. */
  async result(json: unknown, ...lines: string[]): Promise<void> {
    if (this.isJson) return this.line(JSON.stringify(json));
    for (const line of lines) await this.line(line);
  }

  /** Prints a table whose columns are aligned; the last one is as it is. */
  async table(rows: readonly (readonly string[])[], alignRight: readonly number[] = []): Promise<void> {
    const widths = rows[0]?.map((_, i) => Math.max(...rows.map((row) => row[i]?.length ?? 0))) ?? [];
    for (const row of rows) {
      const cells = row.map((cell, i) =>
        alignRight.includes(i) ? cell.padStart(widths[i] ?? 0) : cell.padEnd(widths[i] ?? 0),
      );
      await this.line(cells.join('  ').trimEnd());
    }
  }

  /** Writes bytes to standard output; resolves when they are written. */
  async bytes(bytes: Uint8Array | string): Promise<void> {
    this.clearProgress();
    try {
      // Node's stream of a file takes a part for the whole, if a full disk has room for a part only.
      if (fstatSync(STDOUT).isFile()) return writeFileSync(STDOUT, bytes);
      await new Promise<void>((resolve, reject) => {
        process.stdout.write(bytes, (error) => (error ? reject(error) : resolve()));
      });
    } catch (error) {
      throw outputError(error);
    }
  }

  /** Writes the lines that were printed so far. */
  async flush(): Promise<void> {
    if (this.#lines.length === 0) return;
    const text = `${this.#lines.join('\n')}\n`;
    this.#lines = [];
    this.#chars = 0;
    await this.bytes(text);
  }

  /** Prints a note for a person, beside the result. */
  note(text: string): void {
    if (this.isJson) return;
    this.clearProgress();
    process.stderr.write(`${text}\n`);
  }

  /** Shows how far long work is; the last call wins. */
  progress(text: () => string): void {
    if (this.isJson || !process.stderr.isTTY || performance.now() < this.#progressAt) return;
    this.#progressAt = performance.now() + PROGRESS_MS;
    this.#hasProgress = true;
    process.stderr.write(`\r\u001b[K${text().slice(0, (process.stderr.columns ?? 80) - 1)}`);
  }

  /** Removes the line that shows the progress. */
  clearProgress(): void {
    if (this.#hasProgress) process.stderr.write('\r\u001b[K');
    this.#hasProgress = false;
  }
}
