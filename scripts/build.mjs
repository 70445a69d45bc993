// Builds everything that ships or is shown: crates -> js/pkg and build (wasm) -> dist (the npm package) -> build/site (pages).
// Invariants: The engine is compiled only when its sources changed. The workers and the wasm are beside index.js and are found by
// `new URL(.., import.meta.url)` alone. A size over its budget fails the build.

import { createHash } from 'node:crypto';
import {
  chmodSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { basename, join, relative } from 'node:path';
import { build as esbuild, transform } from 'esbuild';
import { rolldown } from 'rolldown';
import { tidyDeclarations } from './declarations.mjs';
import { EXPORTED } from './entries.mjs';
import { setup } from './setup.mjs';
import { buildSite } from './site.mjs';
import { CLOSURES, printSizes } from './sizes.mjs';
import { isProgram, main, root, run, step } from './tools.mjs';

const SOURCES = join(root, 'js', 'src');
const TARGET = 'es2022';
/** The npm package. */
export const DIST = join(root, 'dist');
/** The engine as wasm-bindgen writes it: the wasm file and its types, and glue that nothing uses. */
const PKG = join(root, 'js', 'pkg');
const ENGINE = join(PKG, 'varve_bg.wasm');
// Not in js/pkg: wasm-pack optimises whatever wasm it finds there.
const TOOLS = join(root, 'build', 'varve-tools.wasm');
const STAMP = join(root, 'build', 'wasm.stamp');
/** `VARVE_NAMES=1` keeps the names of functions in the engine, for profiles: some hundred KB that never ship. */
const NAMED = Boolean(process.env['VARVE_NAMES']);

const isWorker = (/** @type {string} */ name) => name.endsWith('.js');
/** The entry points of the package: files of js/src. */
const ENTRIES = EXPORTED.filter(([name]) => !isWorker(name)).map(([, file]) => file);
/** The scripts that workers are started from, and those that the engine worker loads later: one file each. */
const WORKERS = EXPORTED.filter(([name]) => isWorker(name)).map(([, file]) => file);

/** How the scripts of the package are written. Rolldown writes them some 4 % shorter than esbuild, after gzip. */
const WRITTEN = { minify: true, sourcemap: true, comments: { legal: false } };

/** Papa Parse then leaves out its stream of Node, which needs `require`. */
const WITHOUT_STREAMS = { PAPA_BROWSER_CONTEXT: 'true' };

/** Everything the compiled engine depends on: folders, then single files. */
const WASM_CRATES = ['varve', 'varve-cipher', 'varve-host', 'varve-wasm', 'varve-tools'];
const WASM_FOLDERS = WASM_CRATES.map((crate) => `crates/${crate}/src`);
const WASM_FILES = [...WASM_CRATES.map((crate) => `crates/${crate}/Cargo.toml`), ...['Cargo.toml', 'Cargo.lock']];
const WASM_TOOLS = ['rust-toolchain.toml', '.cargo/config.toml', 'package-lock.json', 'scripts/build.mjs'];

/** Sets up, then builds the engine, the package and the pages. */
export async function build() {
  await setup({ wasm: true });
  await step('engine', buildWasm);
  await step('package', buildPackage);
  await step('pages', () => buildSite(DIST));
  return printSizes(DIST);
}

// How the engine is compiled for size: opt-level z, with the most called functions marked for speed. That is a tenth smaller
// than opt-level s, and no slower, because a get, a set and a scan spend their time in the marked functions.
// The marks are `optimize(speed)`, an unstable attribute behind the cfg `varve_size`: without the cfg there are no marks.
// A panic that aborts at once formats no message and keeps no location (10 KB). It needs a standard library built the same
// way, which stable Rust offers only under RUSTC_BOOTSTRAP. Vectorized loops do not pay in code like this (xxh3
// writes its own). Without reference types wasm-bindgen leaves the module unchanged: with them it would add a table of
// JavaScript values, and an import to set it up, which an engine of numbers does not need.
const WASM_ENV = {
  RUSTC_BOOTSTRAP: '1',
  CARGO_PROFILE_RELEASE_OPT_LEVEL: 'z',
  RUSTFLAGS: [
    ...['-Ctarget-feature=+simd128,-reference-types', '-Cno-vectorize-loops', '-Cno-vectorize-slp'],
    '--cfg varve_size',
    ...['-Zunstable-options', '-Cpanic=immediate-abort'],
  ].join(' '),
};
const WASM_STD = ['-Zbuild-std=std,panic_abort', '-Zbuild-std-features=optimize_for_size'];

/** Compiles the engine into js/pkg and the tools into build/, unless the existing ones come from these sources. */
export async function buildWasm() {
  const stamp = fingerprint();
  const isBuilt = existsSync(ENGINE) && existsSync(TOOLS);
  if (isBuilt && existsSync(STAMP) && readFileSync(STAMP, 'utf8') === stamp) return;
  mkdirSync(join(root, 'build'), { recursive: true });
  await compileEngine();
  await compileTools();
  // The hash is computed again: the first build of a clone writes Cargo.lock.
  writeFileSync(STAMP, fingerprint());
}

/** wasm-pack compiles the engine, has wasm-bindgen write its types, and wasm-opt make it smaller. */
async function compileEngine() {
  const crate = join('crates', 'varve-wasm');
  const to = ['--out-dir', relative(join(root, crate), PKG), '--out-name', 'varve'];
  await run(
    'wasm-pack',
    [
      ...['--log-level', 'error', 'build', crate, NAMED ? '--profiling' : '--release', '--target', 'web'],
      ...['--mode', 'no-install', '--no-pack', ...to, '--', ...WASM_STD],
    ],
    { env: WASM_ENV },
  );
}

/** Compiles the tools that check and repair stores, with the engine's flags, so that code shared with the engine is compiled once. */
async function compileTools() {
  const target = process.env['CARGO_TARGET_DIR'] || join(root, 'target');
  const triple = 'wasm32-unknown-unknown';
  const strip = NAMED ? [] : ['--', '-Clink-arg=--strip-all'];
  await run(
    'cargo',
    ['rustc', '--quiet', '-p', 'varve-tools', '--release', '--target', triple, ...WASM_STD, ...strip],
    { env: WASM_ENV },
  );
  copyFileSync(join(target, triple, 'release', 'varve_tools.wasm'), TOOLS);
}

/** A hash over the names and bytes of the engine's sources. */
function fingerprint() {
  const sources = WASM_FOLDERS.flatMap((folder) =>
    readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' }).map((file) => join(folder, file)),
  ).filter((file) => file.endsWith('.rs'));
  const hash = createHash('sha256').update(NAMED ? 'named\0' : '');
  for (const file of [...sources.sort(), ...WASM_FILES, ...WASM_TOOLS]) {
    if (existsSync(join(root, file))) hash.update(`${file}\0`).update(readFileSync(join(root, file)));
  }
  return hash.digest('hex');
}

/** Bundles js/src into dist, with the wasm beside it and the declarations. It replaces the old dist in one move. */
export async function buildPackage() {
  const fresh = join(root, 'dist.new');
  rmSync(fresh, { recursive: true, force: true });
  await bundleWorkers(fresh);
  await bundleCommand(fresh);
  writeFileSync(CLOSURES, JSON.stringify(await bundleEntries(fresh), null, 2));
  copyFileSync(ENGINE, join(fresh, 'varve.wasm'));
  copyFileSync(TOOLS, join(fresh, 'varve-tools.wasm'));
  await run('tsc', ['--project', 'tsconfig.build.json', '--outDir', fresh]);
  const declarations = [...ENTRIES, ...WORKERS].map((file) => file.replace(/\.ts$/, '.d.ts'));
  tidyDeclarations(fresh, declarations, SOURCES);
  rmSync(DIST, { recursive: true, force: true });
  renameSync(fresh, DIST);
}

/**
 * Bundles each worker into one file. The scripts of repairs and of key slots have no source maps: their code is in other maps, and these
 * would be a thirtieth of the package.
 * @param {string} dir
 */
async function bundleWorkers(dir) {
  for (const file of WORKERS) {
    const bundle = await rolldown({
      input: join(SOURCES, file),
      external: [/^node:/],
      platform: 'neutral',
      transform: { target: TARGET },
    });
    const name = `${basename(file, '.ts')}.js`;
    const sourcemap = !['repair-worker.js', 'encryption-worker.js'].includes(name);
    await bundle.write({ file: join(dir, name), ...WRITTEN, sourcemap, codeSplitting: false });
  }
}

/**
 * Bundles the command. It is one file, and imports the entries that it needs as its users do: at run time, when it needs them. It has
 * no source map, which would be a tenth of the package.
 * @param {string} outdir
 */
async function bundleCommand(outdir) {
  const outfile = join(outdir, 'cli.js');
  await esbuild({
    entryPoints: [join(SOURCES, 'cli.ts')],
    outfile,
    bundle: true,
    format: 'esm',
    target: TARGET,
    external: ['node:*'],
    define: WITHOUT_STREAMS,
    plugins: [entriesStay],
    minify: true,
    legalComments: 'none',
    logLevel: 'warning',
  });
  chmodSync(outfile, 0o755);
}

/** An entry that is imported at run time stays an import of the file in dist. */
const entriesStay = {
  name: 'entries-stay',
  /** @param {import('esbuild').PluginBuild} build */
  setup({ onResolve }) {
    onResolve({ filter: /^\.\.\/(index|fs)\.ts$/ }, ({ path }) => ({
      path: `./${basename(path, '.ts')}.js`,
      external: true,
    }));
  },
};

/**
 * Bundles the entries. They share their common modules, so that a VarveError is the same class in all of them; `chunkOf` keeps
 * the shared files few, which esbuild cannot do. Returns each entry with all files that are loaded with it, itself first.
 * @param {string} dir
 */
async function bundleEntries(dir) {
  const bundle = await rolldown({
    input: Object.fromEntries(ENTRIES.map((file) => [basename(file, '.ts'), join(SOURCES, file)])),
    // Modules of varve/fs, on server runtimes; of varve/cloudflare; the libraries of the page.
    external: [/^node:/, /^cloudflare:/, 'react', 'abstract-level', 'yjs'],
    platform: 'neutral',
    resolve: { mainFields: ['main'] },
    transform: { target: TARGET, define: WITHOUT_STREAMS },
    // Other entries may import from index.js what they share with it alone.
    preserveEntrySignatures: 'allow-extension',
    plugins: [wasmAsModule, cssAsText, constantsArePure, importsAtOnce],
  });
  const { output } = await bundle.write({
    dir,
    entryFileNames: '[name].js',
    chunkFileNames: (chunk) => `chunk-${chunk.name.replace(/^chunk-/, '')}-[hash].js`,
    ...WRITTEN,
    codeSplitting: {
      includeDependenciesRecursively: false,
      groups: [ENCRYPTION_CHUNK, { name: chunkOf, debugName: 'shared' }],
    },
  });
  const chunks = output.filter((file) => file.type === 'chunk');
  const entries = chunks.filter(({ isEntry }) => isEntry);
  return Object.fromEntries(entries.map(({ fileName }) => [fileName, filesOf(fileName, chunks)]));
}

/** A page with keys loads this code, and not all of the engine that uses it, too. */
const ENCRYPTION_CHUNK = { name: 'chunk-encryption', test: /js\/src\/encryption\//, priority: 1 };

/**
 * The chunk of a module, by the entries that load it at once. A page without a bundler fetches each file, so they are few: one has
 * what a page alone needs, one has what it shares with other entries, and the code that a page may never use is one file more. The
 * cache is a file of its own: a page loads it when its store is open.
 * The entries themselves import and export: a bundler leaves out each file of which nothing is used.
 * @param {string} id
 * @param {import('rolldown').ChunkingContext} context
 */
function chunkOf(id, context) {
  const importedBy = (/** @type {string} */ module) => context.getModuleInfo(module)?.importedIds ?? [];
  const loads = (/** @type {string[]} */ ...files) =>
    files.some((file) => reach(join(SOURCES, file), importedBy).includes(id));
  if (ENTRIES.some((file) => id === join(SOURCES, file))) return null;
  if (loads('fs.ts') && loads('inline.ts')) return 'chunk-common';
  if (loads('index.ts')) {
    return loads('deno-kv.ts', 'collections.ts', 'http.ts', 'shards.ts', 'synchronous.ts', 'cloudflare.ts')
      ? 'chunk-common'
      : 'chunk-client';
  }
  if (loads('cache/read-cache.ts')) return loads('http.ts', 'collections.ts') ? 'chunk-common' : 'chunk-cache';
  if (loads('http.ts', 'collections.ts', 'inspector/panel.ts')) return loads('inline.ts') ? 'chunk-turns' : null;
  if (loads('deno-kv.ts')) return loads('inline.ts') ? 'chunk-journal' : null;
  if (loads('server/inline.ts')) return loads('synchronous.ts', 'cloudflare.ts') ? 'chunk-engine' : 'chunk-inline';
  if (loads('inline.ts')) return loads('synchronous.ts', 'cloudflare.ts') ? 'chunk-transaction' : 'chunk-later';
  return null;
}

/**
 * Everything that `next` leads to from a start, the start first.
 * @param {string} start
 * @param {(from: string) => readonly string[]} next
 */
function reach(start, next) {
  const seen = new Set([start]);
  for (const from of seen) for (const to of next(from)) seen.add(to);
  return [...seen];
}

/**
 * All files that are loaded with a file, itself first.
 * @param {string} name
 * @param {readonly import('rolldown').OutputChunk[]} chunks
 */
function filesOf(name, chunks) {
  const imports = new Map(chunks.map((chunk) => [chunk.fileName, chunk.imports]));
  return reach(name, (from) => imports.get(from)?.filter((to) => imports.has(to)) ?? []);
}

/** Each entry also imports what its imports import, so that a page without a bundler fetches all of it at once. */
const importsAtOnce = {
  name: 'imports-at-once',
  /**
   * @param {unknown} _
   * @param {import('rolldown').OutputBundle} bundle
   */
  generateBundle(_, bundle) {
    const chunks = Object.values(bundle).filter((file) => file.type === 'chunk');
    for (const chunk of chunks.filter(({ isEntry }) => isEntry)) {
      const more = filesOf(chunk.fileName, chunks)
        .slice(1)
        .filter((name) => !chunk.imports.includes(name));
      const imports = more.map((name) => `\nimport"./${name}";`).join('');
      chunk.code = chunk.code.replace(/(?=\n\/\/# sourceMappingURL)|$/, imports);
    }
  },
};

/**
 * The constants of a module are marked as pure, so that a bundle contains only those that it uses. Otherwise bundlers keep all whose
 * values are computed, and a file that many entries share would bring all of them into every bundle.
 */
const constantsArePure = {
  name: 'constants-are-pure',
  /**
   * @this {import('rolldown').TransformPluginContext}
   * @param {string} code
   * @param {string} module
   */
  transform(code, module) {
    if (!module.startsWith(SOURCES) || !module.endsWith('.ts')) return undefined;
    let [marked, at] = ['', 0];
    for (const node of this.parse(code, { lang: 'ts' }).body) {
      const declaration = node.type === 'ExportNamedDeclaration' ? node.declaration : node;
      for (const { id, init } of declaration?.type === 'VariableDeclaration' ? declaration.declarations : []) {
        if (init === null || id.type !== 'Identifier') continue;
        const text = code.slice(init.start, init.end);
        marked += code.slice(at, init.start) + asPure(text, init.type);
        at = init.end;
      }
    }
    // No line moves, so the map of the sources stays as it is.
    return { code: marked + code.slice(at), map: null };
  },
};

/**
 * The value of a constant, marked as pure if a bundler takes it for computed. A mark on a call does not cover what its arguments read,
 * so the call gets a function around it.
 * @param {string} text
 * @param {string} type
 */
function asPure(text, type) {
  if (/^(new )?[\w.]+(<[^()]*>)?\([^.()]*\)$/.test(text)) return `/* @__PURE__ */ ${text}`;
  const isComputed =
    type === 'ObjectExpression' ? text.includes('...') : /^(Call|New|Member|Conditional)Exp/.test(type);
  return isComputed ? `/* @__PURE__ */ (function () { return ${text}; })()` : text;
}

/** The styles of the inspector are texts in its code: `import { css } from './panel.css'`. */
const cssAsText = {
  name: 'css-as-text',
  /** @param {string} id */
  async load(id) {
    if (!id.endsWith('.css')) return undefined;
    const { code } = await transform(readFileSync(id, 'utf8'), { loader: 'css', minify: true, target: TARGET });
    return { code: `export const css = ${JSON.stringify(code.trim())};`, moduleType: /** @type {const} */ ('js') };
  },
};

/** On workerd a wasm file is imported: the import stays, and names the file beside the entry. */
const wasmAsModule = {
  name: 'wasm-as-module',
  /** @param {string} id */
  resolveId: (id) => (/^\.\/[\w-]+\.wasm$/.test(id) ? { id, external: true } : undefined),
};

if (isProgram(import.meta.url)) {
  await main(async () => {
    if (process.argv.includes('--wasm')) {
      await setup({ wasm: true });
      await step('engine', buildWasm);
    } else {
      (await build()).failIfOver();
    }
  });
}
