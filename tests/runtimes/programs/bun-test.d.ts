/** The parts of Bun's test runner that are used here: its own types would replace those of Node. */
declare module 'bun:test' {
  export function test(name: string, run: () => Promise<void>): void;
}
