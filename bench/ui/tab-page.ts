/**
 * A tab of the suite `multi-tab`: `?run=<name of the run>&tab=<its own name>`. It obeys commands and shows nothing.
 */

import '../peers/all.ts';
import { type Command, channelName, type FromTab } from '../suites/tabs/protocol.ts';
import { Tab } from '../suites/tabs/tab.ts';

const address = new URLSearchParams(location.search);
const name = address.get('tab') ?? '';
const workers: Worker[] = [];

// The suite ends workers that the package made, so the page collects them.
globalThis.Worker = class extends Worker {
  constructor(url: string | URL, options?: WorkerOptions) {
    super(url, options);
    workers.push(this);
  }
};

const channel = new BroadcastChannel(channelName(address.get('run') ?? ''));
const tab = new Tab(workers);
const say = (message: FromTab): void => channel.postMessage(message);

channel.onmessage = ({ data }: MessageEvent<Command>) => {
  const { to, id } = data;
  if (to !== name) return;
  const run = tab[data.name as keyof Tab] as (given: unknown) => Promise<unknown>;
  run.call(tab, data.with).then(
    (value) => say({ from: name, type: 'reply', id, value }),
    (error: unknown) => say({ from: name, type: 'failed', id, error: String(error) }),
  );
};
say({ from: name, type: 'ready' });
