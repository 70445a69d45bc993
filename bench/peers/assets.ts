/**
 * Where the files lie that a peer fetches at run time: peers/NAME beside the page (scripts/peers.mjs copies them there).
 *
 * Invariant: nothing comes from another origin, and what was compiled once is not compiled again: opening a second store
 * in the same thread costs a peer what it costs its users.
 */

const compiled = new Map<string, Promise<WebAssembly.Module>>();

/** The address of a file of a peer. */
export function assetUrl(peer: string, file: string): string {
  return new URL(`./peers/${peer}/${file}`, import.meta.url).href;
}

/** A wasm file of a peer, compiled once in each thread. */
export function compiledAsset(peer: string, file: string): Promise<WebAssembly.Module> {
  const url = assetUrl(peer, file);
  let module = compiled.get(url);
  if (module === undefined) {
    module = WebAssembly.compileStreaming(fetch(url));
    compiled.set(url, module);
  }
  return module;
}
