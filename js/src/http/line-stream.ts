/**
 * Lines as a stream of bytes, made when the reader takes them.
 *
 * Invariant: a chunk is made only when the reader asks for one, so with a slow client the store reads slowly and nothing
 * piles up. The iterator is closed when it ends or fails, or when the client disconnects. An error after the first chunk ends the
 * stream with an error: the connection breaks, so the response does not look complete. Nobody else sees that error, so it is noted.
 */

/** A chunk is sent when it has about this many characters. */
const CHUNK_CHARS = 64 * 1024;

/** One line. */
export interface Line {
  readonly text: string;
}

/** Lines as a stream, and the length of its first chunk. */
interface LineStream {
  readonly stream: ReadableStream<Uint8Array>;
  readonly firstBytes: number;
}

/** The lines as a stream. Rejects if the first chunk fails, because the response can still be an error then; `failed` gets later errors. */
export async function lineStream(
  lines: AsyncGenerator<Line, void, undefined>,
  failed: (error: unknown) => void,
): Promise<LineStream> {
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
  const firstBytes = first?.length ?? 0;
  const source: UnderlyingDefaultSource<Uint8Array> = {
    async pull(controller) {
      try {
        const bytes = first ?? (await chunk());
        first = undefined;
        if (bytes === undefined) controller.close();
        else controller.enqueue(bytes);
      } catch (error) {
        failed(error);
        throw error;
      }
    },
    async cancel() {
      await lines.return();
    },
  };
  return { stream: new ReadableStream(source, { highWaterMark: 0 }), firstBytes };
}
