/** Lines of bytes that arrive in pieces: of a file, of standard input, of a response. */

const PIECE_CHARS = 64 * 1024;

/**
 * The texts of a stream of bytes, without a byte order mark. Throws a `TypeError` where they are not UTF-8.
 */
export async function* textsOf(bytes: AsyncIterable<Uint8Array>): AsyncGenerator<string, undefined> {
  const decoder = new TextDecoder('utf-8', { fatal: true });
  for await (const piece of bytes) yield decoder.decode(piece, { stream: true });
  yield decoder.decode();
}

/** The lines of a stream, without their ends. Only `\n` and `\r\n` end a line: JSON may have other separators in its strings. */
export async function* linesOf(texts: AsyncIterable<string>): AsyncGenerator<string, undefined> {
  let rest: string[] = [];
  for await (const text of texts) {
    const lines = text.split('\n');
    const last = lines.pop() as string;
    for (const line of lines) {
      const whole = rest.length === 0 ? line : `${rest.join('')}${line}`;
      rest = [];
      yield whole.endsWith('\r') ? whole.slice(0, -1) : whole;
    }
    if (last !== '') rest.push(last);
  }
  if (rest.length > 0) yield rest.join('');
}

/** Joins short texts to longer pieces. */
export async function* inPieces(texts: AsyncIterable<string>): AsyncGenerator<string, undefined> {
  let piece = '';
  for await (const text of texts) {
    piece += text;
    if (piece.length < PIECE_CHARS) continue;
    yield piece;
    piece = '';
  }
  if (piece !== '') yield piece;
}
