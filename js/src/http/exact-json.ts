/**
 * JSON that is accepted exactly as it was sent, or not at all.
 *
 * `JSON.parse` keeps the last of two members with the same name, and rounds a number to the nearest double. So the text is read
 * a second time, token by token: a text that would lose or change something is refused.
 *
 * Invariant: the value of an accepted text contains every member and every digit of the text.
 */

/** A longer number loses some of its digits, or has zeros without meaning. */
const NUMBER_CHARS_MAX = 500;
/** The most digits that `toExponential` returns. */
const DIGITS_MAX = 101;

/** The error of a text that is valid JSON, but would lose something. */
export class InexactJson extends Error {}

/** The value of a JSON text. Throws `SyntaxError` if it is not JSON, `InexactJson` if the value would lose something of the text. */
export function parseExactJson(text: string): unknown {
  const value: unknown = JSON.parse(text);
  checkTokens(text);
  return value;
}

/** The message for a person who typed the text or chose the file; that of the error is for clients of `varve/http`. */
export function inexact({ message }: InexactJson): string {
  return message.replace(/ Send it .*/, ' Write it as a text, in quotes.');
}

/** Reads a text that is known to be JSON. */
function checkTokens(text: string): void {
  /** The names in each object around `at`; undefined for an array. */
  const around: (Set<string> | undefined)[] = [];
  let isName = false;
  for (let at = 0; at < text.length; ) {
    const char = text[at] as string;
    if (char === '"') {
      const end = endOfString(text, at);
      if (isName) addName(around.at(-1), text.slice(at, end));
      isName = false;
      at = end;
    } else if (char === '-' || (char >= '0' && char <= '9')) {
      const end = endOfNumber(text, at);
      checkNumber(text.slice(at, end));
      at = end;
    } else {
      if (char === '{') around.push(new Set());
      else if (char === '[') around.push(undefined);
      else if (char === '}' || char === ']') around.pop();
      if (char === '{' || char === ',') isName = around.at(-1) !== undefined;
      at++;
    }
  }
}

/** Where a string ends that begins at a quote. */
function endOfString(text: string, start: number): number {
  for (let at = start + 1; ; at++) {
    if (text[at] === '\\') at++;
    else if (text[at] === '"') return at + 1;
  }
}

function endOfNumber(text: string, start: number): number {
  let at = start + 1;
  while (at < text.length && '0123456789.eE+-'.includes(text[at] as string)) at++;
  return at;
}

function addName(names: Set<string> | undefined, quoted: string): void {
  // A name is the same with and without escapes.
  const name = JSON.parse(quoted) as string;
  if (names?.has(name)) throw new InexactJson(`The member ${JSON.stringify(name.slice(0, 40))} is given twice.`);
  names?.add(name);
}

/** Throws unless a double has all digits of a number: rounded to the same number of digits, it has the same text. */
function checkNumber(text: string): void {
  const number = Number(text);
  if (String(number) === text) return;
  if (text.length > NUMBER_CHARS_MAX || !hasDigits(number, text)) {
    throw new InexactJson(
      `The number ${text.slice(0, 40)} is none that a double has. Send it as a string, or as CBOR.`,
    );
  }
}

function hasDigits(number: number, text: string): boolean {
  const [mantissa = '', exponent = '0'] = text.toLowerCase().replace(/^-/, '').split('e');
  const [whole = '', fraction = ''] = mantissa.split('.');
  const digits = `${whole}${fraction}`.replace(/^0+/, '');
  const significant = digits.replace(/0+$/, '');
  if (significant === '') return true;
  if (!Number.isFinite(number) || significant.length > DIGITS_MAX) return false;
  const power = Number(exponent) + digits.length - fraction.length - 1;
  const [read = '', readPower] = Math.abs(number)
    .toExponential(significant.length - 1)
    .split('e');
  return read.replace('.', '') === significant && Number(readPower) === power;
}
