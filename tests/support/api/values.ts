// Values that follow from a few numbers, and texts that are equal where the values are equal.

/** The parts of a value: each write of a history has its own tag. */
export interface ValueSpec {
  readonly kind: 'text' | 'bytes' | 'object' | 'number' | 'blob';
  readonly length: number;
}

/** The value of a write. A store that cannot wait gets an object with the properties of the Blob instead. */
export function valueFrom({ kind, length }: ValueSpec, tag: number, takesBlobs = false): unknown {
  switch (kind) {
    case 'number':
      return tag;
    case 'text':
      return `${tag} ${'é'.repeat(length)}`;
    case 'bytes': {
      // This must not compress.
      let state = tag + 1;
      return Uint8Array.from({ length }, () => {
        state = Math.imul(state, 0x9e3779b1) ^ (state >>> 15);
        return state >>> 24;
      });
    }
    case 'blob': {
      const type = `of/${tag}`;
      return takesBlobs ? new Blob(['x'.repeat(length)], { type }) : { size: length, type };
    }
    case 'object':
      return { tag, at: new Date(tag), list: [null, undefined, 1n, -0], map: new Map([[tag, 'x'.repeat(length)]]) };
  }
}

const TEXT_MAX = 40;

/** A text of a value or a key: the same for equal ones. A long one is described by its length and a hash. */
export function textOf(value: unknown): string {
  switch (typeof value) {
    case 'string':
      return value.length <= TEXT_MAX ? JSON.stringify(value) : `text of ${value.length}, ${hashOf(value)}`;
    case 'number':
      return Object.is(value, -0) ? '-0' : String(value);
    case 'bigint':
      return `${value}n`;
    case 'object':
      break;
    default:
      return String(value);
  }
  if (value === null) return 'null';
  if (value instanceof Uint8Array) {
    const text = Array.from(value, (byte) => String.fromCharCode(byte)).join('');
    return value.length <= TEXT_MAX ? `<${[...value].join(' ')}>` : `bytes of ${value.length}, ${hashOf(text)}`;
  }
  if (value instanceof Blob) return textOf({ size: value.size, type: value.type });
  if (value instanceof Date) return `date ${value.getTime()}`;
  if (value instanceof Map) return `map ${textOf([...value])}`;
  if (Array.isArray(value)) return `[${value.map(textOf).join(', ')}]`;
  const fields = Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1));
  return `{${fields.map(([name, field]) => `${name}: ${textOf(field)}`).join(', ')}}`;
}

function hashOf(text: string): string {
  let hash = 0;
  for (let i = 0; i < text.length; i++) hash = (Math.imul(hash, 31) + text.charCodeAt(i)) | 0;
  return (hash >>> 0).toString(16);
}

/** Changes the arguments of a call, once the call has returned: it must have copied them. */
export function spoil(...given: readonly unknown[]): void {
  for (const value of given) {
    if (value instanceof Uint8Array) value.fill(7);
    else if (value instanceof Date) value.setTime(7);
    else if (Array.isArray(value)) value.splice(0, value.length, 'spoilt');
    else if (typeof value === 'object' && value !== null)
      Object.assign(value, { id: 7, title: 'spoilt', tag: 'spoilt' });
  }
}
