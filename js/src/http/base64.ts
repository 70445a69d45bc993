/**
 * Base64 (RFC 4648). Written: the standard alphabet, padded. Read: both alphabets, padded or not.
 *
 * `Uint8Array.fromBase64` is not in every supported runtime yet.
 */

const CHARS = 8192;

/** The bytes as base64. */
export function toBase64(bytes: Uint8Array): string {
  let binary = '';
  for (let at = 0; at < bytes.length; at += CHARS) {
    binary += String.fromCharCode(...bytes.subarray(at, at + CHARS));
  }
  return btoa(binary);
}

/** The bytes of base64; undefined if the text is not base64. */
export function fromBase64(text: string): Uint8Array | undefined {
  // `atob` would skip white space.
  if (!/^[\w+/-]*={0,2}$/.test(text)) return undefined;
  let binary: string;
  try {
    binary = atob(text.replaceAll('-', '+').replaceAll('_', '/'));
  } catch {
    return undefined;
  }
  const bytes = new Uint8Array(binary.length);
  for (let i = 0; i < bytes.length; i++) bytes[i] = binary.charCodeAt(i);
  return bytes;
}
