/** The notes app over SQLite on opfs-sahpool, in a worker of the app. */

import { createBirpc } from 'birpc';
import { overPort } from '../../../peers/remote.ts';
import { type Notes, start } from './app.ts';

const worker = new Worker(new URL('./sqlite-thread.ts', import.meta.url), { type: 'module' });

start(Promise.resolve(createBirpc<Notes>({}, overPort(worker)) as unknown as Notes));
