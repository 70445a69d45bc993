/** Values as a console shows them, on one line. */

/** Text as it is; an error as its code and message; any other value as code would make it. */
export function show(value: unknown): string {
  if (typeof value === 'string') return value;
  if (value instanceof Error) return `${(value as { code?: string }).code ?? value.name}: ${value.message}`;
  return literal(value);
}

/** A value as code would make it. */
export function literal(value: unknown): string {
  if (typeof value === 'string') return `'${value.replaceAll("'", "\\'")}'`;
  if (typeof value === 'bigint') return `${value}n`;
  if (typeof value !== 'object' || value === null) return String(value);
  const all = (items: Iterable<unknown>): string => Array.from(items, literal).join(', ');
  if (Array.isArray(value)) return `[${all(value)}]`;
  if (value instanceof Date) return value.toISOString();
  if (value instanceof Map)
    return `Map { ${Array.from(value, ([k, v]) => `${literal(k)} => ${literal(v)}`).join(', ')} }`;
  if (value instanceof Set) return `Set { ${all(value)} }`;
  if (ArrayBuffer.isView(value)) return `${value.constructor.name} [${all(value as Uint8Array)}]`;
  const fields = Object.entries(value).map(([name, field]) => `${name}: ${literal(field)}`);
  return fields.length === 0 ? '{}' : `{ ${fields.join(', ')} }`;
}
