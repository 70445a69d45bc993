/**
 * workerd with the Worker of object.ts, started by miniflare in a process of its own.
 *
 * Invariant: requests reach the Worker through a socket of its own, not through miniflare's entry Worker, which would add a
 * hop that no deployment has.
 */

import { Miniflare } from 'miniflare';
import { bundledWorker, workerOptions } from '../../workerd.ts';
import { options, serveUntilDismissed } from './program.ts';

const script = await bundledWorker('http', 'programs', 'object.ts');
const miniflare = new Miniflare({
  ...workerOptions(script, { STORES: 'HttpStore' }, options.directory),
  unsafeDirectSockets: [{ host: '127.0.0.1', port: 0 }],
});
const { origin } = await miniflare.unsafeGetDirectURL();
await serveUntilDismissed({ url: origin, versions: '' }, () => miniflare.dispose());
