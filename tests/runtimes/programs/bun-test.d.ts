/** What of Bun's test runner is used here: its own types would replace those of Node. */
declare module 'bun:test' {
  export function test(name: string, run: () => Promise<void>): void;
}
