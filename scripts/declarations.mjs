// The declarations of the package, after the compiler has written them: those that its entries do not reach are internal and
// do not ship.
// Invariant: the remaining files are complete. Every relative import names a file that is there, with the extension that every
// resolution understands.

import { copyFileSync, readdirSync, readFileSync, rmdirSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';

const GLOBAL = 'global.d.ts';
const IMPORTED = /(from |import\(|import )'(\.{1,2}\/[^']+)\.ts'/g;

/**
 * @param {string} folder what the compiler wrote
 * @param {readonly string[]} entries files of it that are imported by others, `index.d.ts` and the like
 * @param {string} sources where global.d.ts is taken from
 */
export function tidyDeclarations(folder, entries, sources) {
  const reached = new Set(entries.map((entry) => join(folder, entry)));
  for (const file of reached) {
    const text = readFileSync(file, 'utf8');
    for (const [, , path = ''] of text.matchAll(IMPORTED)) reached.add(join(dirname(file), `${path}.d.ts`));
    writeFileSync(file, text.replace(IMPORTED, "$1'$2.js'"));
  }
  const names = readdirSync(folder, { recursive: true, encoding: 'utf8' }).map((name) => join(folder, name));
  for (const name of names.filter((file) => file.endsWith('.d.ts') && !reached.has(file))) rmSync(name);
  removeEmptyFolders(folder);
  copyFileSync(join(sources, GLOBAL), join(folder, GLOBAL));
  for (const entry of entries.filter((name) => dirname(name) === '.')) {
    const file = join(folder, entry);
    writeFileSync(file, `/// <reference path="./${GLOBAL}" />\n${readFileSync(file, 'utf8')}`);
  }
}

/** @param {string} folder */
function removeEmptyFolders(folder) {
  for (const entry of readdirSync(folder, { withFileTypes: true })) {
    if (!entry.isDirectory()) continue;
    const inner = join(folder, entry.name);
    removeEmptyFolders(inner);
    if (readdirSync(inner).length === 0) rmdirSync(inner);
  }
}
