/** A tab of the suite `multi-tab`: `?channel=NAME`. It makes the calls that it is asked for, and shows nothing. */

import { createBirpc } from 'birpc';
import '../peers/all.ts';
import { type Director, overChannel } from '../suites/tabs/protocol.ts';
import { Tab } from '../suites/tabs/tab.ts';

const workers: Worker[] = [];

// The suite ends workers that the package made, so the page collects them.
globalThis.Worker = class extends Worker {
  constructor(url: string | URL, options?: WorkerOptions) {
    super(url, options);
    workers.push(this);
  }
};

const channel = new BroadcastChannel(new URLSearchParams(location.search).get('channel') ?? '');
void createBirpc<Director, Tab>(new Tab(workers), overChannel(channel)).ready();
