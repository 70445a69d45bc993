// Finds the Chromium that the browser tests and the benchmark drive.
// A system browser comes first: it needs no download, and it is what a person would open.

import { accessSync, constants, existsSync } from 'node:fs';
import { delimiter, join } from 'node:path';

const NAMES = ['chromium', 'chromium-browser', 'google-chrome', 'google-chrome-stable'];
const PLACES = [
  '/Applications/Google Chrome.app/Contents/MacOS/Google Chrome',
  '/Applications/Chromium.app/Contents/MacOS/Chromium',
  'C:\\Program Files\\Google\\Chrome\\Application\\chrome.exe',
  'C:\\Program Files (x86)\\Google\\Chrome\\Application\\chrome.exe',
];

/** @param {string} path */
export function isExecutable(path) {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}

/**
 * The first of these programs that is on the path.
 * @param {string[]} names
 */
export function onPath(...names) {
  const folders = (process.env['PATH'] ?? '').split(delimiter).filter(Boolean);
  return names.flatMap((name) => folders.map((folder) => join(folder, name))).find(isExecutable);
}

/**
 * The path of a Chromium, or undefined. `VARVE_BROWSER` names one explicitly.
 * @returns {Promise<string | undefined>}
 */
export async function findBrowser() {
  const named = process.env['VARVE_BROWSER'];
  if (named) return named;
  const system = onPath(...NAMES) ?? PLACES.find(isExecutable);
  if (system) return system;
  const { chromium } = await import('playwright');
  const own = chromium.executablePath();
  return own && existsSync(own) ? own : undefined;
}

/** Flags for an unattended Chromium. The sandbox cannot start as root, so there it is left out. */
export function browserFlags() {
  const flags = ['--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking'];
  return process.getuid?.() === 0 ? ['--no-sandbox', ...flags] : flags;
}
