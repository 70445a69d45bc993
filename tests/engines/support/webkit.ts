// WebKitGTK, in its own plain browser, MiniBrowser, on an invisible display. No program drives it (undriven.ts), because its driver,
// WebKitWebDriver, offers only sessions that store nothing and that end with the first page that ends. Its profile is a folder like that
// of any other browser.

import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { findMiniBrowser, findXvfb } from '../../../scripts/engines.mjs';
import type { Engine } from './engine.ts';
import { UndrivenBrowser } from './undriven.ts';

const WITHOUT_HANDLES = { kind: 'indexeddb', reason: /browser has no .*file/ } as const;

export const webkit: Engine = {
  name: 'webkit',
  rung: WITHOUT_HANDLES,
  modes: [
    { title: 'in a private window', rung: WITHOUT_HANDLES, isPrivate: true },
    {
      title: 'where the engine has files, but does not open them',
      rung: { kind: 'indexeddb', reason: /refused to open a file of the store \(NotSupportedError\)/ },
      flags: ['--features=+FileSystem,+AccessHandle,+FileSystemWritableStream,+StorageAPI,+StorageAPIEstimate'],
    },
  ],
  hasTabProcesses: true,
  endsTransactions: false,
  canCrashTabs: false,
  sharedWorkerRung: 'indexeddb',
  async launch(directory, { site, mode }) {
    const executable = findMiniBrowser();
    const xvfb = findXvfb();
    if (executable === undefined || xvfb === undefined) throw new Error('No WebKitGTK was found: run `npm run setup`.');
    const display = await startDisplay(xvfb);
    mkdirSync(directory, { recursive: true });
    const flags = [
      '--javascript-can-open-windows-automatically=true',
      ...(mode?.isPrivate ? ['--private'] : []),
      ...(mode?.flags ?? []),
    ];
    const env = {
      HOME: directory,
      XDG_DATA_HOME: join(directory, 'data'),
      XDG_CACHE_HOME: join(directory, 'cache'),
      XDG_CONFIG_HOME: join(directory, 'config'),
      DISPLAY: display.name,
    };
    const command = { executable, flags, env, pages: 'WebKitWebProcess' };
    return UndrivenBrowser.start(command, site, () => display.process.kill());
  },
};

/** Starts a display server, which picks a free number. */
async function startDisplay(xvfb: string): Promise<{ name: string; process: ChildProcess }> {
  const server = spawn(xvfb, ['-displayfd', '3', '-screen', '0', '800x600x24', '-nolisten', 'tcp'], {
    stdio: ['ignore', 'ignore', 'ignore', 'pipe'],
  });
  const [number] = (await once(server.stdio[3] as NodeJS.ReadableStream, 'data')) as [Buffer];
  return { name: `:${number.toString().trim()}`, process: server };
}
