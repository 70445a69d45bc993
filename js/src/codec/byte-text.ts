/** Bytes as text, for maps and sets: keys of an OrderedMap would take more. */

/** A text of as many characters as there are bytes: texts compare as their bytes do. */
export function textOfBytes(bytes: Uint8Array): string {
  let text = '';
  for (const byte of bytes) text += String.fromCharCode(byte);
  return text;
}
