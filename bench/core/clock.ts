/**
 * The clock, and how coarse it is.
 *
 * Invariant: nothing shorter than GROUP_STEPS steps of the timer is ever timed. Shorter work is timed in groups, and
 * its row says how large they were (`groupSize`). An isolated page steps 5 us in Chromium and 20 us elsewhere, an
 * ordinary one 100 to 1000 us, which is why the bench is served with COOP and COEP.
 */

export const GROUP_STEPS = 20;

export function now(): number {
  return performance.now();
}

/** The smallest step that the timer was seen to take, in milliseconds. */
export function timerStepMs(): number {
  let step = Infinity;
  for (let i = 0; i < 50; i++) {
    const start = now();
    let end = start;
    while (end === start) end = now();
    step = Math.min(step, end - start);
  }
  return step;
}

const { port1, port2 } = new MessageChannel();
let wake: (() => void) | undefined;

/** Listens only while somebody waits: a port with a listener keeps a Node process alive, and the command line imports this too. */
function woken(): void {
  const resolve = wake;
  wake = undefined;
  port1.onmessage = null;
  resolve?.();
}

/** Lets go of the turn once, so that messages are served; sooner than a timeout would come back. */
export function turn(): Promise<void> {
  return new Promise((resolve) => {
    const earlier = wake;
    wake = () => {
      earlier?.();
      resolve();
    };
    port1.onmessage = woken;
    port2.postMessage(0);
  });
}
