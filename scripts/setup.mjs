// Installs what the project needs and npm cannot install: the Rust toolchain, the WebAssembly tools, a browser.
// Invariant: it looks before it installs, so that a second run changes nothing and takes well under a second.
// Every script calls `setup` with the parts it needs.

import { existsSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { findBrowser } from './browser.mjs';
import { chosenEngines, findFirefox, findMiniBrowser, findXvfb } from './engines.mjs';
import { cache, capture, isProgram, main, Problem, root, run, step } from './tools.mjs';

const WASM_PACK = '0.15.1';

/** @typedef {{ rust?: boolean, wasm?: boolean, browser?: boolean, engines?: boolean }} Parts */

/**
 * Makes sure that the requested parts are there. `wasm` includes `rust`; `engines` are the browsers that `VARVE_ENGINES` names.
 * @param {Parts} parts
 */
export async function setup(parts) {
  if (parts.rust || parts.wasm) await rust();
  if (parts.wasm) await wasmTools();
  if (parts.browser || (parts.engines && chosenEngines().includes('chromium'))) await browser();
  if (parts.engines) await engines();
}

/** The toolchain that rust-toolchain.toml names: one list of versions, read here and by rustup. */
async function rust() {
  const file = readFileSync(join(root, 'rust-toolchain.toml'), 'utf8');
  const channel = /channel = "(.+?)"/.exec(file)?.[1] ?? 'stable';
  const words = (/** @type {string} */ name) =>
    [...(new RegExp(`${name} = \\[(.*?)\\]`).exec(file)?.[1] ?? '').matchAll(/"(.+?)"/g)].map((m) => m[1] ?? '');
  const components = words('components');
  const targets = words('targets');
  if (capture('rustup', ['--version']) === undefined) {
    throw new Problem(
      `Rust's installer is missing: install rustup (see https://rustup.rs), open a new terminal and run this again.`,
    );
  }
  const installed = capture('rustup', ['component', 'list', '--toolchain', channel, '--installed']) ?? '';
  const missing = [...components, ...targets.map((target) => `rust-std-${target}`)].filter(
    (name) => !installed.includes(name),
  );
  if (missing.length === 0) return;
  console.log(`Installing Rust ${channel} (the engine is written in it) with ${missing.join(', ')}.`);
  await step('rust', () =>
    run('rustup', [
      ...['toolchain', 'install', channel, '--no-self-update', '--profile', 'minimal'],
      ...components.flatMap((name) => ['--component', name]),
      ...targets.flatMap((name) => ['--target', name]),
    ]),
  );
}

/** wasm-pack and the wasm-bindgen of exactly the crate's version, built from source into the cache. */
async function wasmTools() {
  const manifest = readFileSync(join(root, 'crates', 'varve-wasm', 'Cargo.toml'), 'utf8');
  const bindgen = /wasm-bindgen = .*?"=([\d.]+)"/.exec(manifest)?.[1];
  if (!bindgen) throw new Problem('crates/varve-wasm/Cargo.toml must pin wasm-bindgen to one version ("=x.y.z").');
  const wanted = [
    { tool: 'wasm-pack', crate: 'wasm-pack', version: WASM_PACK },
    { tool: 'wasm-bindgen', crate: 'wasm-bindgen-cli', version: bindgen },
  ].filter(({ tool, version }) => capture(tool, ['--version'])?.trim() !== `${tool} ${version}`);
  if (wanted.length === 0) return;
  const crates = wanted.map(({ crate, version }) => `${crate}@${version}`);
  console.log(`Building ${crates.join(' and ')} (they turn the engine into a web package) into ${cache}: two minutes.`);
  // A debug build of these tools takes half the time to build and is as quick on a module of this size.
  const target = join(cache, 'target');
  const install = ['install', '--quiet', '--debug', '--force', '--root', cache, ...crates];
  const options = { env: { CARGO_TARGET_DIR: target, CARGO_INCREMENTAL: '0', CARGO_PROFILE_DEV_DEBUG: '0' } };
  await step('wasm tools', async () => {
    try {
      await run('cargo', [...install, '--locked'], options);
    } catch {
      console.log('The locked versions are not all to be had; trying with the newest compatible ones.');
      await run('cargo', install, options);
    }
  });
  rmSync(target, { recursive: true, force: true });
}

/** A Chromium for the browser tests and the benchmark. */
async function browser() {
  if (await findBrowser()) return;
  console.log('Installing Chromium (the browser tests and the benchmark run in it).');
  await fromDebian(['chromium']);
  if (!(await findBrowser())) await attempt(() => run('playwright', ['install', '--no-shell', 'chromium']));
  if (!(await findBrowser())) {
    throw new Problem(
      'No Chromium was found and none could be installed: install Chromium or Chrome, or set VARVE_BROWSER to its path.',
    );
  }
}

/** Stock browsers of the other engines, for the tests that run in all of them. */
async function engines() {
  const chosen = chosenEngines();
  if (chosen.includes('firefox') && findFirefox() === undefined) {
    console.log('Installing Firefox (the tests of all browser engines run in it).');
    // Ubuntu has no firefox-esr, and its package "firefox" is a snap, which cannot see a profile in a temporary folder.
    await fromDebian(['firefox-esr']);
    if (findFirefox() === undefined)
      throw missing('Firefox', 'firefox', 'install Firefox, or set VARVE_FIREFOX to its path');
  }
  if (chosen.includes('webkit') && (findMiniBrowser() === undefined || findXvfb() === undefined)) {
    console.log(
      'Installing WebKitGTK and Xvfb, the display it is run on (the tests of all browser engines run in it).',
    );
    await fromDebian(['libwebkit2gtk-4.1-0', 'xvfb']);
    if (findMiniBrowser() === undefined || findXvfb() === undefined) {
      const fix = 'on Linux install WebKitGTK with its MiniBrowser (or set VARVE_WEBKIT to its path) and Xvfb';
      throw missing('WebKitGTK', 'webkit', fix);
    }
  }
}

/**
 * The error for an engine that is unavailable: it fails the tests, unless the caller excludes the engine explicitly.
 * @param {string} engine
 * @param {string} name
 * @param {string} fix
 */
function missing(engine, name, fix) {
  const others = chosenEngines().filter((one) => one !== name);
  const without = others.length > 0 ? ` To test without it: VARVE_ENGINES=${others.join(',')}.` : '';
  return new Problem(`${engine} was not found and could not be installed: ${fix}.${without}`);
}

/**
 * Installs packages on Debian, as root, where no password is needed; elsewhere it changes nothing.
 * @param {string[]} packages
 */
async function fromDebian(packages) {
  if (process.getuid?.() !== 0 || !existsSync('/etc/debian_version')) return;
  await attempt(async () => {
    await run('apt-get', ['update', '--quiet=2']);
    await run('apt-get', ['install', '--yes', '--quiet=2', '--no-install-recommends', ...packages], {
      env: { DEBIAN_FRONTEND: 'noninteractive' },
    });
  });
}

/** @param {() => Promise<void>} work one of several ways: its error is printed, and the next way is tried */
async function attempt(work) {
  try {
    await work();
  } catch (error) {
    console.log(error instanceof Error ? error.message : error);
  }
}

if (isProgram(import.meta.url)) {
  await main(async () => {
    await setup({ wasm: true, browser: true, engines: true });
    console.log('Everything is installed.');
  });
}
