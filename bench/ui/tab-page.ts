/** A tab of the suite `multi-tab`: `?channel=NAME`. It makes the calls that it is asked for, and shows nothing. */

import { createBirpc } from 'birpc';
import '../peers/all.ts';
import { type Director, overChannel } from '../suites/tabs/protocol.ts';
import { Tab } from '../suites/tabs/tab.ts';

const channel = new BroadcastChannel(new URLSearchParams(location.search).get('channel') ?? '');
void createBirpc<Director, Tab>(new Tab(), overChannel(channel)).ready();
