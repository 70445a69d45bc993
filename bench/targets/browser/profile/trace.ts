/**
 * CPU profiles out of a trace of Chromium: one for each thread, in the form that DevTools and speedscope open.
 *
 * Invariant: a thread that ended during the trace has its profile like any other. That is why the samples are taken
 * from a trace and not by `Profiler.start` and `stop`, which lose those of a worker that is terminated.
 */

/** The category of a trace in which V8 tells its samples. */
export const PROFILER_CATEGORY = 'disabled-by-default-v8.cpu_profiler';

/** A function in a profile, as the DevTools protocol has it. */
export interface CallFrame {
  readonly functionName: string;
  readonly scriptId: string;
  readonly url: string;
  readonly lineNumber: number;
  readonly columnNumber: number;
}

/** A place in the tree of calls. */
export interface ProfileNode {
  readonly id: number;
  readonly callFrame: CallFrame;
  hitCount: number;
  readonly children: number[];
}

/** The content of a `.cpuprofile` file. Times are in microseconds. */
export interface CpuProfile {
  readonly nodes: ProfileNode[];
  readonly startTime: number;
  endTime: number;
  readonly samples: number[];
  readonly timeDeltas: number[];
}

/** The profile of one thread. */
export interface ThreadProfile {
  /** What ran in it: the name of its first script, else the kind of thread. */
  readonly name: string;
  readonly profile: CpuProfile;
}

/** What is read of an event of a trace. */
interface TraceEvent {
  readonly name: string;
  readonly pid: number;
  readonly tid: number;
  readonly id?: string;
  readonly args: {
    readonly name?: string;
    readonly data?: {
      readonly startTime?: number;
      readonly endTime?: number;
      readonly cpuProfile?: { readonly nodes?: readonly TraceNode[]; readonly samples?: readonly number[] };
      readonly timeDeltas?: readonly number[];
    };
  };
}

interface TraceNode {
  readonly id: number;
  readonly parent?: number;
  readonly callFrame: Partial<Omit<CallFrame, 'scriptId'>> & { readonly scriptId?: number | string };
}

/** The profiles of all threads of a trace that were sampled, in the order in which they began. */
export function profilesOf(trace: string): ThreadProfile[] {
  const { traceEvents } = JSON.parse(trace) as { readonly traceEvents: readonly TraceEvent[] };
  const threads = new Map<string, string>();
  const profiles = new Map<string, Reader>();
  for (const event of traceEvents) {
    if (event.name === 'thread_name') threads.set(`${event.pid} ${event.tid}`, event.args.name ?? '');
    const key = `${event.pid} ${event.id}`;
    if (event.name === 'Profile') {
      profiles.set(key, new Reader(`${event.pid} ${event.tid}`, event.args.data?.startTime ?? 0));
    }
    if (event.name === 'ProfileChunk') profiles.get(key)?.add(event);
  }
  return [...profiles.values()]
    .filter(({ profile }) => profile.samples.length > 0)
    .map(({ thread, profile }) => ({ name: nameOf(profile, threads.get(thread) ?? 'thread'), profile }));
}

/** Gathers the chunks of one profile. */
class Reader {
  readonly thread: string;
  readonly profile: CpuProfile;
  readonly #nodes = new Map<number, ProfileNode>();

  constructor(thread: string, startTime: number) {
    this.thread = thread;
    this.profile = { nodes: [], startTime, endTime: startTime, samples: [], timeDeltas: [] };
  }

  add({ args: { data } }: TraceEvent): void {
    for (const node of data?.cpuProfile?.nodes ?? []) this.#addNode(node);
    for (const sample of data?.cpuProfile?.samples ?? []) {
      this.profile.samples.push(sample);
      const node = this.#nodes.get(sample);
      if (node !== undefined) node.hitCount++;
    }
    for (const delta of data?.timeDeltas ?? []) {
      this.profile.timeDeltas.push(delta);
      this.profile.endTime += delta;
    }
  }

  #addNode({ id, parent, callFrame }: TraceNode): void {
    const { functionName = '', scriptId = 0, url = '', lineNumber = -1, columnNumber = -1 } = callFrame;
    const frame = { functionName, scriptId: String(scriptId), url, lineNumber, columnNumber };
    const node = { id, callFrame: frame, hitCount: 0, children: [] };
    this.#nodes.set(id, node);
    this.profile.nodes.push(node);
    if (parent !== undefined) this.#nodes.get(parent)?.children.push(id);
  }
}

/** A worker is called by its script, as threads of workers all have the same name; chunks are parts of a script. */
function nameOf({ nodes }: CpuProfile, thread: string): string {
  if (thread === 'CrRendererMain') return 'page';
  const scripts = nodes.flatMap(({ callFrame }) => /([\w-]+)\.js(?:$|\?)/.exec(callFrame.url)?.[1] ?? []);
  return scripts.find((name) => name.endsWith('-worker')) ?? scripts[0] ?? thread;
}
