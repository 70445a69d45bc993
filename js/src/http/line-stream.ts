/**
 * Lines as a stream of bytes, made as they are taken.
 *
 * Invariant: a chunk is made only when the reader asks for one, so a slow client makes the store read slowly and nothing
 * piles up. The items are let go when they end, fail, or the client leaves. An error after the first chunk ends the
 * stream as an error: the connection breaks, it does not look complete.
 */

/** A chunk is sent when it has about so many characters. */
const CHUNK_CHARS = 64 * 1024;

/** What a line is made of. */
export interface Line {
  readonly text: string;
}

/** The lines as a stream. Rejects where already the first chunk fails, while the answer can still be an error. */
export async function lineStream(lines: AsyncGenerator<Line, void, undefined>): Promise<ReadableStream<Uint8Array>> {
  const encoder = new TextEncoder();
  const chunk = async (): Promise<Uint8Array | undefined> => {
    let text = '';
    while (text.length < CHUNK_CHARS) {
      const { done, value } = await lines.next();
      if (done) break;
      text += `${value.text}\n`;
    }
    return text === '' ? undefined : encoder.encode(text);
  };
  let first: Uint8Array | undefined = await chunk();
  const source: UnderlyingDefaultSource<Uint8Array> = {
    async pull(controller) {
      const bytes = first ?? (await chunk());
      first = undefined;
      if (bytes === undefined) controller.close();
      else controller.enqueue(bytes);
    },
    async cancel() {
      await lines.return();
    },
  };
  return new ReadableStream(source, { highWaterMark: 0 });
}
