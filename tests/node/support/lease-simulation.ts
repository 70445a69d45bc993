/**
 * A simulation of leases: the classes that the product runs, with clocks, messages and an engine that are made up.
 *
 * In each step, one process does one thing, chosen by a seed: a client calls, or handles a message; the leader receives a message,
 * runs a frame, or sends an answer; something goes wrong. Processes freeze at any step and for any time, while the others go on.
 * Leaders die while leases are out, and the next one begins with the store as it is. Each process has a clock of its own.
 *
 * Invariant: a seed gives one history. Nothing here depends on time or on the order of promises.
 */

import { KeptReads, type Ticket } from '../../../js/src/cache/kept-reads.ts';
import { Footprint, isIn, type PlainFootprint, type TextRange } from '../../../js/src/protocol/footprint.ts';
import { LEASE_MS, ResponseFlag } from '../../../js/src/protocol/lease.ts';
import { type Grant, Leases, type Lessor } from '../../../js/src/server/leases.ts';
import { type Call, isLinearizable } from './linearizable.ts';
import { Random } from './random.ts';

/** A store: the values by their keys, in the order of the keys. */
export type State = ReadonlyMap<string, string>;

type Operation =
  | { readonly kind: 'get'; readonly key: string }
  | { readonly kind: 'set'; readonly key: string; readonly value: string }
  | { readonly kind: 'delete'; readonly range: TextRange }
  | { readonly kind: 'scan'; readonly range: TextRange };

/** An operation under way: what its client sent, and sends again to the next leader. */
interface Sent {
  readonly number: number;
  readonly operation: Operation;
  readonly call: Call<State>;
  readonly ticket: Ticket | undefined;
  sentAt: number;
}

type Up =
  | { readonly type: 'frame'; readonly sent: Sent }
  | { readonly type: 'renew'; readonly sentAt: number }
  | { readonly type: 'revoked'; readonly revocation: number };
type Down =
  | { readonly type: 'answer'; readonly sent: Sent; readonly result: string; readonly flags: number }
  | { readonly type: 'renewed'; readonly sentAt: number; readonly isGranted: boolean }
  | { readonly type: 'revoke'; readonly revocation: number; readonly footprint: PlainFootprint };

/** The parts that a mutant replaces. */
export interface Parts {
  leases(lessor: Lessor<Line, Up>): Pick<Leases<Line, Up>, keyof Leases<Line, Up>>;
  kept(now: () => number): Pick<KeptReads, keyof KeptReads>;
}

export const SOUND: Parts = {
  leases: (lessor) => new Leases(lessor),
  // Room for four entries: so some are dropped for lack of room.
  kept: (now) => new KeptReads(1000, now),
};

/** How much of what a simulation is about has happened in it. */
export interface Coverage {
  hits: number;
  revocations: number;
  held: number;
  isolated: number;
  takeovers: number;
  writtenThrough: number;
}

const KEYS = ['a', 'b', 'c'];
const BOUNDS: readonly TextRange[] = [
  ['a', 'b'],
  ['a', 'c'],
  ['b', undefined],
  ['a', undefined],
];

/** The result of a read that cannot be answered any more. */
const RETRY = 'retry';

/** A clock that shows any time, and goes on at nearly the same rate as the others. */
class Clock {
  readonly #offset: number;
  readonly #rate: number;
  readonly #world: { readonly time: number };

  constructor(world: { readonly time: number }, random: Random) {
    this.#world = world;
    this.#offset = random.below(1e9);
    this.#rate = 1 + (random.fraction() - 0.5) / 100;
  }

  readonly now = (): number => this.#offset + this.#world.time * this.#rate;
}

/** One connection of a client: messages both ways, in order. */
class Line {
  readonly client: number;
  readonly up: Up[] = [];
  readonly down: Down[] = [];
  isGone = false;

  constructor(client: number) {
    this.client = client;
  }

  send(message: Down): void {
    if (!this.isGone) this.down.push(message);
  }
}

/** A client: its calls, and what it keeps. */
class SimulatedClient {
  readonly number: number;
  readonly kept: ReturnType<Parts['kept']>;
  readonly clock: Clock;
  line: Line | undefined;
  sent: Sent[] = [];
  lastRead: Operation | undefined;
  frozenUntil = 0;
  isDead = false;
  #isRenewing = false;
  #tickets = 0;
  readonly #world: Simulation;

  constructor(number: number, world: Simulation, random: Random) {
    this.number = number;
    this.#world = world;
    this.clock = new Clock(world, random);
    this.kept = world.parts.kept(this.clock.now);
  }

  call(operation: Operation): void {
    const world = this.#world;
    const call = world.begin(this.number, operation);
    let ticket: Ticket | undefined;
    if (operation.kind === 'get' || operation.kind === 'scan') {
      this.lastRead = operation;
      const { id, range } = place(operation);
      const found = this.kept.get(id);
      if (found !== undefined) {
        world.coverage.hits++;
        world.end(call, operation, text(found.bytes));
        if (this.kept.isOld && !this.#isRenewing) {
          this.#isRenewing = true;
          this.line?.up.push({ type: 'renew', sentAt: this.clock.now() });
        }
        return;
      }
      ticket = this.kept.read(id, range);
    } else if (operation.kind === 'set') ticket = this.kept.write(operation.key);
    else this.kept.writeRange(operation.range);
    const sent: Sent = { number: ++this.#tickets, operation, call, ticket, sentAt: this.clock.now() };
    this.sent.push(sent);
    this.line?.up.push({ type: 'frame', sent });
  }

  /** Uses another connection from now on, or none. */
  connect(line: Line | undefined): void {
    this.kept.lost();
    this.#isRenewing = false;
    this.line = line;
    for (const sent of line === undefined ? [] : this.sent) {
      sent.sentAt = this.clock.now();
      line?.up.push({ type: 'frame', sent });
    }
  }

  receive(message: Down): void {
    const { kept } = this;
    if (message.type === 'revoke') {
      kept.revoked(Footprint.of(message.footprint));
      this.line?.up.push({ type: 'revoked', revocation: message.revocation });
    } else if (message.type === 'renewed') {
      this.#isRenewing = false;
      if (message.isGranted) kept.granted(message.sentAt, false);
    } else this.#answered(message);
  }

  #answered({ sent, result, flags }: Extract<Down, { type: 'answer' }>): void {
    const { kept } = this;
    const { operation, ticket, call } = sent;
    const isGranted = (flags & ResponseFlag.granted) !== 0;
    if (isGranted) kept.granted(sent.sentAt, (flags & ResponseFlag.isNew) !== 0);
    this.sent = this.sent.filter((other) => other !== sent);
    if (operation.kind === 'set' && ticket !== undefined) {
      if (isGranted && !ticket.isStale) this.#world.coverage.writtenThrough++;
      kept.written(ticket, isGranted ? { bytes: bytes(operation.value) } : undefined);
    } else if (ticket !== undefined) {
      if (isGranted && result !== RETRY) kept.keep(ticket, { bytes: bytes(result), range: ticket.range });
      kept.leave(ticket);
    }
    this.#world.end(call, operation, result);
  }
}

/** A leader, from when it has the lock until it dies. */
class SimulatedLeader {
  readonly clock: Clock;
  readonly leases: ReturnType<Parts['leases']>;
  readonly lines = new Set<Line>();
  frozenUntil = 0;
  wakeTime = Number.POSITIVE_INFINITY;
  /** Whether it knows which clients live. */
  knows = false;
  readonly #queue: { readonly item: Up; readonly from: Line }[] = [];
  /** Answers that wait for their commit. */
  readonly #unsent: {
    readonly from: Line;
    readonly sent: Sent;
    readonly result: string;
    readonly grant: Grant | undefined;
  }[] = [];
  readonly #world: Simulation;

  constructor(world: Simulation, random: Random) {
    this.#world = world;
    this.clock = new Clock(world, random);
    this.leases = world.parts.leases({
      now: this.clock.now,
      wakeAt: (time) => {
        this.wakeTime = time;
      },
      isAlone: () => this.lines.size === 1,
      onFree: (from, items) => this.#queue.unshift(...items.map((item) => ({ item, from }))),
    });
  }

  receive(from: Line, item: Up): void {
    if (item.type === 'revoked') this.leases.confirm(from, item.revocation);
    else this.#queue.push({ item, from });
  }

  join(line: Line): void {
    this.lines.add(line);
    this.leases.clientClosed(line.client);
  }

  leave(line: Line): void {
    line.isGone = true;
    this.lines.delete(line);
    this.leases.leave(line);
  }

  get canRun(): boolean {
    return this.#queue.length > 0;
  }

  run(): void {
    const next = this.#queue.shift();
    if (next === undefined || next.from.isGone) return;
    const { item, from } = next;
    if (item.type !== 'frame') {
      if (!this.leases.admit(from, item)) return;
      if (item.type === 'renew') {
        from.send({ type: 'renewed', sentAt: item.sentAt, isGranted: this.leases.renew(from) });
      }
      return;
    }
    const { sent } = item;
    const { operation } = sent;
    if (!this.leases.admit(from, item, () => footprint(operation, false))) {
      this.#world.coverage.held++;
      return;
    }
    const grant = this.leases.begin(from, () => footprint(operation, true));
    const result = this.#world.execute(from.client, sent.number, operation);
    this.#unsent.push({ from, sent, result, grant });
  }

  get canSend(): boolean {
    return this.#unsent.length > 0;
  }

  send(): void {
    const next = this.#unsent.shift();
    if (next === undefined) return;
    const { from, sent, result, grant } = next;
    from.send({ type: 'answer', sent, result, flags: this.leases.grant(from, grant) });
  }
}

/** Clients, a leader and their store. */
export class Simulation {
  readonly parts: Parts;
  readonly coverage: Coverage = { hits: 0, revocations: 0, held: 0, isolated: 0, takeovers: 0, writtenThrough: 0 };
  time = 0;
  readonly #random: Random;
  readonly #clients: SimulatedClient[] = [];
  readonly #history: Call<State>[] = [];
  /** The results of the operations that were done, by client and number: a repeated frame does nothing twice. */
  readonly #done = new Map<string, string>();
  /** The number of each client's last write that was done. */
  readonly #written = new Map<number, number>();
  #state: State = new Map();
  #leader: SimulatedLeader | undefined;
  #stamp = 0;
  #values = 0;
  /** Of 12 calls that repeat no read: how many read a key, how many read, and how many are no deletion. */
  readonly #shares: readonly [gets: number, reads: number, rest: number];
  /** Whether nothing freezes or dies: then far more calls end. */
  readonly #isCalm: boolean;

  constructor(seed: number, parts: Parts = SOUND) {
    this.parts = parts;
    this.#random = new Random(seed);
    const random = this.#random;
    this.#shares = random.pick([
      [7, 9, 11],
      [0, 5, 12],
    ] as const);
    this.#isCalm = random.below(3) === 0;
    for (let i = 0; i < 2 + random.below(2); i++) this.#clients.push(new SimulatedClient(i, this, random));
    this.#lead();
  }

  /** Runs some steps. Returns whether the history is linearizable. */
  run(steps: number): boolean {
    for (let i = 0; i < steps; i++) this.#step();
    return isLinearizable(this.#history, new Map(), (state) => JSON.stringify([...state]));
  }

  begin(client: number, operation: Operation): Call<State> {
    const call: Call<State> = {
      client,
      start: ++this.#stamp,
      end: Number.POSITIVE_INFINITY,
      keys: KEYS.filter(
        (key) => footprint(operation, true).touches(only(key)) || footprint(operation, false).touches(only(key)),
      ),
      isWrite: operation.kind === 'set' || operation.kind === 'delete',
      apply: (state) => apply(state, operation).state,
    };
    this.#history.push(call);
    return call;
  }

  end(call: Call<State>, operation: Operation, result: string): void {
    call.end = ++this.#stamp;
    call.apply = (state) => {
      if (result === RETRY) return state;
      const done = apply(state, operation);
      return done.result === result ? done.state : undefined;
    };
  }

  execute(client: number, number: number, operation: Operation): string {
    const name = `${client} ${number}`;
    const isWrite = operation.kind === 'set' || operation.kind === 'delete';
    const before = this.#done.get(name);
    if (isWrite && before !== undefined) return before;
    // It is repeated, and a write that was called after it is done: the engine refuses it.
    if (!isWrite && (this.#written.get(client) ?? 0) > number) return RETRY;
    if (isWrite) this.#written.set(client, number);
    const { state, result } = apply(this.#state, operation);
    this.#state = state;
    this.#done.set(name, result);
    return result;
  }

  #step(): void {
    const random = this.#random;
    const client = random.pick(this.#clients);
    const leader = this.#leader;
    this.time += random.below(15);
    const roll = this.#isCalm ? 5 + random.below(195) : random.below(200);
    if (roll < 1) this.#fail(client);
    else if (roll < 3) {
      // Often about as long as a lease.
      const until = this.time + random.pick([10, 500, LEASE_MS - 100, LEASE_MS + 300, 3 * LEASE_MS]);
      if (leader !== undefined && random.below(3) === 0) leader.frozenUntil = until;
      else client.frozenUntil = until;
    } else if (roll < 5) this.time += random.pick([200, LEASE_MS / 2, LEASE_MS + 300]);
    else if (roll < 100) this.#act(client);
    else if (leader === undefined) {
      if (roll < 120) this.#lead();
    } else if (this.time >= leader.frozenUntil) this.#serve(leader);
  }

  #act(client: SimulatedClient): void {
    const random = this.#random;
    if (client.isDead || this.time < client.frozenUntil) return;
    const { line } = client;
    const leader = this.#leader;
    if ((line === undefined || line.isGone) && leader !== undefined && random.below(4) === 0) {
      const next = new Line(client.number);
      client.connect(next);
      leader.join(next);
      return;
    }
    const message = random.below(2) === 0 ? line?.down.shift() : undefined;
    if (message !== undefined) {
      if (message.type === 'revoke') this.coverage.revocations++;
      client.receive(message);
    } else if (client.sent.length < 3) client.call(this.#operation(client));
  }

  #operation({ lastRead }: SimulatedClient): Operation {
    const random = this.#random;
    // Somebody who reads something reads it again.
    if (lastRead !== undefined && random.below(2) === 0) return lastRead;
    const roll = random.below(12);
    const [gets, reads, rest] = this.#shares;
    if (roll < gets) return { kind: 'get', key: random.pick(KEYS) };
    if (roll < reads) return { kind: 'scan', range: random.pick(BOUNDS) };
    if (roll < rest) return { kind: 'set', key: random.pick(KEYS), value: `${++this.#values}` };
    return { kind: 'delete', range: random.pick(BOUNDS) };
  }

  #serve(leader: SimulatedLeader): void {
    const random = this.#random;
    if (!leader.knows && random.below(3) === 0) {
      leader.knows = true;
      // All who live: each may have a lease of the former leader.
      leader.leases.know(this.#clients.filter(({ isDead }) => !isDead).map(({ number }) => number));
      return;
    }
    if (leader.clock.now() >= leader.wakeTime) {
      leader.wakeTime = Number.POSITIVE_INFINITY;
      leader.leases.wake();
      return;
    }
    const line = random.pick([...leader.lines, undefined]);
    const message = line?.up.shift();
    if (line !== undefined && message !== undefined) leader.receive(line, message);
    else if (leader.canRun && random.below(2) === 0) leader.run();
    else if (leader.canSend) leader.send();
  }

  #fail(client: SimulatedClient): void {
    const random = this.#random;
    const leader = this.#leader;
    const roll = random.below(8);
    if (roll < 4) {
      if (leader === undefined) return;
      this.coverage.takeovers++;
      this.#leader = undefined;
      // Its clients do not notice yet.
      for (const line of leader.lines) line.isGone = true;
    } else if (roll < 7) {
      // The connection ends; the client begins anew when it has noticed.
      const { line } = client;
      if (line === undefined || line.isGone || this.time < client.frozenUntil) return;
      client.connect(undefined);
      leader?.leave(line);
    } else if (this.#clients.filter(({ isDead }) => !isDead).length > 2) {
      client.isDead = true;
      if (client.line !== undefined && !client.line.isGone) leader?.leave(client.line);
      this.coverage.isolated++;
    }
  }

  #lead(): void {
    this.#leader = new SimulatedLeader(this, this.#random);
  }
}

function place(operation: Extract<Operation, { kind: 'get' | 'scan' }>): { id: string; range: TextRange | undefined } {
  if (operation.kind === 'get') return { id: operation.key, range: undefined };
  const { range } = operation;
  return { id: `\xff${range}`, range };
}

/** The keys and ranges that an operation reads, or writes. */
function footprint(operation: Operation, isRead: boolean): Footprint {
  const all = new Footprint();
  if (isRead !== (operation.kind === 'get' || operation.kind === 'scan')) return all;
  if ('key' in operation) all.add(operation.key);
  else all.addRange(...operation.range);
  return all;
}

function only(key: string): Footprint {
  const one = new Footprint();
  one.add(key);
  return one;
}

function apply(state: State, operation: Operation): { state: State; result: string } {
  if (operation.kind === 'get') return { state, result: state.get(operation.key) ?? '' };
  if (operation.kind === 'scan') {
    return { state, result: JSON.stringify([...state].filter(([key]) => isIn(key, operation.range)).sort()) };
  }
  const next = new Map(state);
  if (operation.kind === 'set') next.set(operation.key, operation.value);
  else for (const key of state.keys()) if (isIn(key, operation.range)) next.delete(key);
  return { state: next, result: 'done' };
}

function bytes(value: string): Uint8Array | undefined {
  return value === '' ? undefined : new TextEncoder().encode(value);
}

function text(found: Uint8Array | undefined): string {
  return found === undefined ? '' : new TextDecoder().decode(found);
}
