// Values as JSON, where that says all of them; otherwise as near as JSON comes, and then they are only shown.
// Invariant: `is_exact` holds only for what reads back as the same value.

/** A value as text. */
export interface ValueText {
  readonly text: string;
  /** Whether JSON says all of it. */
  readonly is_exact: boolean;
}

/** A value as JSON in several lines. */
export function valueText(value: unknown): ValueText {
  return { text: JSON.stringify(value, near, 2) ?? String(value), is_exact: isJson(value, new Set()) };
}

/** A value in one line, at most `length` characters of it. */
export function valueLine(value: unknown, length: number): string {
  const text = JSON.stringify(value, near) ?? String(value);
  return text.length > length ? `${text.slice(0, length - 1)}\u2026` : text;
}

/** Whether a value is made of what JSON has, and of nothing else. */
function isJson(value: unknown, met: Set<object>): boolean {
  if (value === null || typeof value === 'string' || typeof value === 'boolean') return true;
  if (typeof value === 'number') return Number.isFinite(value) && !Object.is(value, -0);
  if (typeof value !== 'object' || met.has(value)) return false;
  met.add(value);
  const plain = Array.isArray(value) || Object.getPrototypeOf(value) === Object.prototype;
  const is_json = plain && Object.values(value).every((item) => isJson(item, met));
  met.delete(value);
  return is_json;
}

/** What comes nearest to a value that JSON has not. */
function near(_: string, value: unknown): unknown {
  if (typeof value === 'bigint') return `${value}n`;
  if (typeof value === 'number' && !Number.isFinite(value)) return String(value);
  if (value instanceof Map) return { Map: [...value] };
  if (value instanceof Set) return { Set: [...value] };
  if (value instanceof RegExp || value instanceof Error) return String(value);
  if (ArrayBuffer.isView(value)) return { [value.constructor.name]: `${value.byteLength} bytes` };
  if (value instanceof ArrayBuffer) return { ArrayBuffer: `${value.byteLength} bytes` };
  return value;
}
