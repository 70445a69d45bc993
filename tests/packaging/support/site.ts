// A built site on a server of its own: no COOP, no COEP, and the strictest policy that the package is promised to work under.

import { serve } from '../../../scripts/server.mjs';
import { readmeBlock } from './readme.ts';

/** Nothing but scripts of the site, WebAssembly, workers of the site, and its files: as the README has it. */
export const POLICY = readmeBlock('', 'default-src').trim();

/** The same, with no leave to compile WebAssembly. */
export const POLICY_WITHOUT_WASM = POLICY.replace(" 'wasm-unsafe-eval'", '');

/** Serves a folder under a policy while `use` runs. A port is part of an origin: every call has stores of its own. */
export async function withSite<T>(folder: string, policy: string, use: (origin: string) => Promise<T>): Promise<T> {
  const headers = { 'Content-Security-Policy': policy };
  const { origin, close } = await serve({ mounts: [{ path: '/', folder, headers }] });
  try {
    return await use(origin);
  } finally {
    await close();
  }
}
