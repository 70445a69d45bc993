/**
 * A client's link to a leader in another tab: a port that the broker hands over or, if there is none, a channel.
 *
 * Invariant: messages that come through an ended link are ignored.
 *
 * A leader that sends nothing for five seconds, although it was asked, is stalled: most likely its page is frozen. Calls that
 * wait for it are rejected with `VARVE_LEADER_STALLED`. Nobody else can lead until the page thaws or ends.
 */

import type { Client, Link } from '../client/client.ts';
import { VarveError } from '../errors.ts';
import type { OpenReport, Request, Response } from '../protocol/messages.ts';
import type { SharingReport } from '../types.ts';
import { linkChannel, uniqueName } from './names.ts';

/** How long the broker has to hand a port over before a channel is tried. It answers in a few ms, and starts in about 30 ms. */
const BROKER_MS = 200;
/** How often a leader is asked for a sign of life, while something waits for it. */
const PING_MS = 1000;
/** How many pings the leader may leave unanswered. */
const STALL_PINGS = 5;

/** The first message to a leader. */
type Join = Extract<Request, { type: 'join' }>;

/** A port or a channel to the leader, before any message was sent. */
interface Transport {
  readonly via: SharingReport['via'];
  post(message: unknown, transfer: object[]): void;
  listen(receive: (data: unknown) => void): void;
  close(): void;
}

/** The parts of its page that a link needs. */
interface LinkContext {
  readonly store: string;
  readonly client: Client;
  /** The broker, if there is one. */
  readonly broker: MessagePort | undefined;
  /** Announces on the store's channel that a client waits on the channel of this link. */
  connect(leader: string, link: string): void;
  /** Called when the broker handed no port over in time. */
  onNoBroker(): void;
  /** Looks for another leader. The announcement of a later one may have been missed. */
  seek(): void;
}

/** A link to a leader, from the first attempt to reach it. */
export class LeaderLink implements Link {
  readonly #client: Client;
  #transport: Transport | undefined;
  /** Also those over which the leader did not answer. */
  readonly #tried: Transport[] = [];
  #silent = 0;
  #isOpen = false;
  #timer: ReturnType<typeof setInterval> | undefined;
  #isEnded = false;

  private constructor(client: Client) {
    this.#client = client;
  }

  /** Whether the leader has answered. */
  get isWelcome(): boolean {
    return this.#transport !== undefined;
  }

  get via(): SharingReport['via'] {
    return this.#transport?.via ?? 'channel';
  }

  /**
   * Finds a port or a channel to the leader and joins it. `opened` is called when its store is open: from then on the client can be
   * connected. Messages before that do not reach the client.
   */
  static start(
    leader: string,
    join: Join,
    context: LinkContext,
    opened: (link: LeaderLink, report: OpenReport) => void,
    failed: (error: VarveError) => void,
  ): LeaderLink {
    const link = new LeaderLink(context.client);
    const channel = (): void => link.#try(overChannel(leader, context), join, opened, failed);
    if (context.broker === undefined) channel();
    else {
      const port = overPort(leader, context.broker);
      link.#try(port, join, opened, failed);
      setTimeout(() => {
        if (link.#isEnded || link.#transport !== undefined) return;
        port.close();
        context.onNoBroker();
        channel();
      }, BROKER_MS);
    }
    link.#timer = setInterval(() => link.#watch(context), PING_MS);
    return link;
  }

  post(message: unknown, transfer: object[]): void {
    if (!this.#isEnded) this.#transport?.post(message, transfer);
  }

  end(): void {
    this.#isEnded = true;
    clearInterval(this.#timer);
    for (const transport of this.#tried) transport.close();
  }

  #try(
    transport: Transport,
    join: Join,
    opened: (link: LeaderLink, report: OpenReport) => void,
    failed: (error: VarveError) => void,
  ): void {
    this.#tried.push(transport);
    transport.listen((data) => {
      if (this.#isEnded || (this.#transport !== undefined && this.#transport !== transport)) return;
      const response = data as Response | ArrayBuffer;
      if (this.#isOpen) {
        this.#silent = 0;
        if (response instanceof ArrayBuffer || response.type !== 'dead') this.#client.receive(response);
        // The leader's engine has failed, but the next leader can open the store. The pending calls may have caused the failure, so
        // they are not sent again.
        else {
          this.#client.disconnect();
          this.#client.abortCalls(VarveError.fromWire(response.error));
        }
        return;
      }
      if (response instanceof ArrayBuffer) return;
      if (response.type === 'welcome') {
        if (this.#transport === undefined) transport.post(join, []);
        this.#transport = transport;
      } else if (response.type === 'opened') {
        this.#isOpen = true;
        opened(this, response.report);
      } else if (response.type === 'failed') failed(VarveError.fromWire(response.error));
    });
  }

  /** Counts pings without an answer, not time: a page that slept, or whose timers are throttled, may not have received the answer yet. */
  #watch({ seek }: LinkContext): void {
    if (!this.#isOpen || !this.#client.isWaiting) {
      this.#silent = 0;
      return;
    }
    if (++this.#silent > STALL_PINGS) {
      this.#client.abortCalls(stalled());
      seek();
    }
    this.#transport?.post({ type: 'ping' } satisfies Request, []);
  }
}

/** The error for calls that wait for a leader that does not answer. */
export function stalled(cause?: unknown): VarveError {
  return new VarveError(
    'VARVE_LEADER_STALLED',
    'The tab that leads this store does not answer; its page may be frozen. The call may still be done. Call again: calls work when that tab continues or is closed.',
    { cause },
  );
}

function overPort(leader: string, broker: MessagePort): Transport {
  const { port1, port2 } = new MessageChannel();
  broker.postMessage({ type: 'connect', member: leader }, [port2]);
  return {
    via: 'port',
    post: (message, transfer) => port1.postMessage(message, transfer as Transferable[]),
    listen: (receive) => {
      port1.onmessage = ({ data }) => receive(data);
    },
    close: () => port1.close(),
  };
}

function overChannel(leader: string, { store, connect }: LinkContext): Transport {
  const name = uniqueName();
  const channel = new BroadcastChannel(linkChannel(store, name));
  return {
    via: 'channel',
    post: (message) => channel.postMessage(message),
    listen: (receive) => {
      channel.onmessage = ({ data }) => receive(data);
      connect(leader, name);
    },
    close: () => channel.close(),
  };
}
