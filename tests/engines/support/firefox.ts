// Firefox as it ships, headless. No program drives it (undriven.ts). When WebDriver or developer tools listen for workers, a worker that
// starts another one can wait for ever (TESTING.md). That does not happen to users.

import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { findFirefox } from '../../../scripts/engines.mjs';
import type { Engine } from './engine.ts';
import { UndrivenBrowser } from './undriven.ts';

/** Settings that a test needs: things a user is asked for or does by hand, and things a new profile would fetch from elsewhere. */
const PREFERENCES = {
  'browser.aboutwelcome.enabled': false,
  'browser.sessionstore.resume_from_crash': false,
  'browser.shell.checkDefaultBrowser': false,
  'datareporting.policy.dataSubmissionEnabled': false,
  'dom.allow_scripts_to_close_windows': true,
  'dom.disable_open_during_load': false,
  'toolkit.startup.max_resumed_crashes': -1,
  'app.normandy.enabled': false,
  'app.update.disabledForTesting': true,
  'browser.safebrowsing.update.enabled': false,
  'extensions.systemAddon.update.enabled': false,
  'network.captive-portal-service.enabled': false,
  'network.connectivity-service.enabled': false,
};

export const firefox: Engine = {
  name: 'firefox',
  rung: { kind: 'opfs' },
  modes: [
    {
      title: 'in a private window',
      rung: { kind: 'indexeddb', reason: /refused the origin private file system \(SecurityError\)/ },
      isPrivate: true,
    },
  ],
  // All tabs of a site share one process.
  hasTabProcesses: false,
  endsTransactions: true,
  canCrashTabs: false,
  sharedWorkerRung: 'opfs',
  async launch(directory, { site, mode }) {
    const executable = findFirefox();
    if (executable === undefined) throw new Error('No Firefox was found: run `npm run setup`.');
    mkdirSync(directory, { recursive: true });
    const preferences = {
      ...PREFERENCES,
      'browser.privatebrowsing.autostart': mode?.isPrivate === true,
    };
    const lines = Object.entries(preferences).map(([name, value]) => `user_pref('${name}', ${value});\n`);
    writeFileSync(join(directory, 'user.js'), lines.join(''));
    const flags = ['--headless', '--no-remote', '--profile', directory];
    return UndrivenBrowser.start({ executable, flags, pages: '-isForBrowser' }, site);
  },
};
