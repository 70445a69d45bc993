/**
 * The shared worker that hands ports from clients to leaders. It has no data and no store.
 *
 *     leader -> broker   { type: 'lead', member }             from now on this line is that member's
 *     client -> broker   { type: 'connect', member } + port   the port is for that member
 *     broker -> leader   a message with the port
 *
 * Invariant: a port goes to the member that it is for. If that member has no line yet, the port waits for it. When too many ports
 * wait, the oldest is dropped: its member may never come.
 */

/** The maximum number of ports that wait for their leader's line. */
const WAITING_MAX = 64;

interface Waiting {
  readonly member: string;
  readonly port: MessagePort;
}

const lines = new Map<string, MessagePort>();
const waiting: Waiting[] = [];

const scope = globalThis as unknown as SharedWorkerGlobalScope;

scope.onconnect = ({ ports: [line] }) => {
  if (line === undefined) return;
  line.onmessage = ({ data: { type, member }, ports: [port] }: MessageEvent<{ type: string; member: string }>) => {
    if (type === 'lead') {
      lines.set(member, line);
      // Not every browser has this event. Without it, a line stays as long as the broker.
      line.addEventListener('close', () => lines.get(member) === line && lines.delete(member));
      for (const one of waiting.splice(0)) hand(one);
    } else if (port !== undefined) hand({ member, port });
  };
};

function hand(one: Waiting): void {
  const line = lines.get(one.member);
  if (line !== undefined) {
    line.postMessage(undefined, [one.port]);
    return;
  }
  waiting.push(one);
  if (waiting.length > WAITING_MAX) waiting.shift();
}
