/** Waiting for a time, and timers that nobody waits for. */

/** Resolves after `ms` milliseconds. */
export function delay(ms: number): Promise<void> {
  return new Promise((resolve) => {
    setTimeout(resolve, ms);
  });
}

/** Makes a timer keep no process alive. */
export function unref(timer: ReturnType<typeof setInterval>): void {
  const { Deno } = globalThis as { Deno?: { unrefTimer?(id: unknown): void } };
  if (typeof timer === 'object') (timer as { unref?(): void }).unref?.();
  else Deno?.unrefTimer?.(timer);
}
