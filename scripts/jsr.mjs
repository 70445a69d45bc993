// The package as JSR takes it, in build/jsr: the built files, with what JSR demands and npm does not. Scripts name their
// declarations, declarations import each other under their own names, and no declaration changes globals.
// Invariant: JSR's checker, which is a part of Deno, accepts the folder.

import { cpSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { root } from './tools.mjs';

/** The folder. */
export const JSR = join(root, 'build', 'jsr');
const NAME = '@varve/varve';
/** Files beside the built ones. */
const BESIDE = ['README.md', 'LICENSE-APACHE', 'LICENSE-MIT', 'THIRD-PARTY.txt'];
/**
 * Entries that JSR does not have: modules of Cloudflare import wasm as only wrangler can, React, abstract-level and Yjs come from npm, and
 * workers are no modules to import; the inspector defines its element in the page's document.
 */
const LEFT_OUT = /cloudflare|react|abstract-level|yjs|inspector|-worker\.js$/;
/** Names for compilers whose `lib` has no DOM; Deno knows them. */
const GLOBALS = 'global.d.ts';

/** The one warning of the dry run: a script that a worker loads later is imported by the URL of the file beside it, which needs no rewriting. */
export const JSR_WARNING = 'warning[unanalyzable-dynamic-import]:';

/** Writes the folder from dist, anew. */
export function stageJsr() {
  const { version, license, exports } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));
  rmSync(JSR, { recursive: true, force: true });
  mkdirSync(JSR, { recursive: true });
  for (const name of ['dist', ...BESIDE]) cpSync(join(root, name), join(JSR, name), { recursive: true });
  rmSync(join(JSR, 'dist', GLOBALS));
  for (const file of readdirSync(join(JSR, 'dist'), { recursive: true, encoding: 'utf8' })) {
    if (file.endsWith('.d.ts')) rewrite(join(JSR, 'dist', file), toDeclarations);
  }
  /** @type {Record<string, string>} */
  const entries = {};
  for (const [entry, { types, default: script }] of Object.entries(exports)) {
    if (types === undefined || LEFT_OUT.test(entry)) continue;
    entries[entry] = script;
    const declarations = types.replace('./dist/', './');
    rewrite(join(JSR, script), (text) => `/* @ts-self-types="${declarations}" */\n${text}`);
  }
  writeFileSync(join(JSR, 'jsr.json'), JSON.stringify({ name: NAME, version, license, exports: entries }, null, 2));
}

/** @param {string} text declarations, as TypeScript writes them */
function toDeclarations(text) {
  const withoutGlobals = text.replace(/^\/\/\/ <reference .*\n/gm, '');
  return withoutGlobals.replace(/((?:from |import\()'\.{1,2}\/[^']+)\.js'/g, "$1.d.ts'");
}

/**
 * @param {string} path
 * @param {(text: string) => string} change
 */
function rewrite(path, change) {
  writeFileSync(path, change(readFileSync(path, 'utf8')));
}
