// The browser engines that `npm run test:engines` runs in, and where their browsers are: stock ones, as a person has them.
// Invariant: `VARVE_ENGINES` alone decides which engines are tested; a missing one is an error, never left out.

import { join } from 'node:path';
import { isExecutable, onPath } from './browser.mjs';
import { Problem } from './tools.mjs';

/** @typedef {'chromium' | 'firefox' | 'webkit'} EngineName */

/** @type {readonly EngineName[]} */
export const ENGINE_NAMES = ['chromium', 'firefox', 'webkit'];

const FIREFOX_PLACES = [
  '/Applications/Firefox.app/Contents/MacOS/firefox',
  'C:\\Program Files\\Mozilla Firefox\\firefox.exe',
];
/** Folders of libwebkit2gtk: of Debian and Ubuntu, Fedora, Arch. */
const WEBKIT_FOLDERS = ['/usr/lib/x86_64-linux-gnu', '/usr/lib/aarch64-linux-gnu', '/usr/libexec', '/usr/lib'];

/**
 * The engines to test: those that `VARVE_ENGINES` names (`chromium,firefox`), or all three.
 * @returns {readonly EngineName[]}
 */
export function chosenEngines() {
  const named = process.env['VARVE_ENGINES'];
  if (named === undefined) return ENGINE_NAMES;
  const names = named.split(',').map((name) => name.trim());
  const unknown = names.filter((name) => !ENGINE_NAMES.some((engine) => engine === name));
  if (unknown.length > 0) {
    throw new Problem(`VARVE_ENGINES is a list of ${ENGINE_NAMES.join(', ')}; it has "${unknown.join('", "')}".`);
  }
  return ENGINE_NAMES.filter((name) => names.includes(name));
}

/**
 * The path of a Firefox, or undefined. `VARVE_FIREFOX` names one explicitly.
 * @returns {string | undefined}
 */
export function findFirefox() {
  return process.env['VARVE_FIREFOX'] || onPath('firefox-esr', 'firefox') || FIREFOX_PLACES.find(isExecutable);
}

/**
 * The path of MiniBrowser, the plain browser that comes with WebKitGTK, or undefined. `VARVE_WEBKIT` names one explicitly.
 * @returns {string | undefined}
 */
export function findMiniBrowser() {
  const places = WEBKIT_FOLDERS.flatMap((folder) =>
    ['4.1', '6.0', '4.0'].map((api) => join(folder, `webkit2gtk-${api}`)),
  );
  return process.env['VARVE_WEBKIT'] || places.map((place) => join(place, 'MiniBrowser')).find(isExecutable);
}

/**
 * The path of Xvfb, an invisible display for the window of WebKitGTK, or undefined.
 * @returns {string | undefined}
 */
export function findXvfb() {
  return onPath('Xvfb');
}
