// A built site on a server of its own: no COOP, no COEP, and the strictest policy that the package is promised to work under.

import type { IncomingMessage, ServerResponse } from 'node:http';
import { text } from 'node:stream/consumers';
import { serve } from '../../../scripts/server.mjs';
import { readmeBlock } from './readme.ts';

/** Nothing but scripts of the site, WebAssembly, workers of the site, and its files: as the README has it. */
export const POLICY = readmeBlock('', 'default-src').trim();

/** The same, with no leave to compile WebAssembly. */
export const POLICY_WITHOUT_WASM = POLICY.replace(" 'wasm-unsafe-eval'", '');

/** Where browsers report violations: those in workers are not told to the page. */
const REPORTS = '/violations';

/** A site that is served. */
export interface Site {
  readonly origin: string;
  /** What was reported so far: the reports as they came. */
  readonly violations: readonly string[];
  /** Resolves with the first report. */
  readonly violated: Promise<string>;
}

/** Serves a folder under a policy while `use` runs. A port is part of an origin: every call has stores of its own. */
export async function withSite<T>(folder: string, policy: string, use: (site: Site) => Promise<T>): Promise<T> {
  const headers = { 'Content-Security-Policy': `${policy}; report-uri ${REPORTS}` };
  const violations: string[] = [];
  let tell = (_report: string): void => undefined;
  const violated = new Promise<string>((resolve) => {
    tell = resolve;
  });
  const respond = (path: string, request: IncomingMessage, response: ServerResponse): boolean => {
    if (path !== REPORTS) return false;
    const hear = async (): Promise<void> => {
      const report = await text(request);
      violations.push(report);
      tell(report);
      response.writeHead(204).end();
    };
    hear().catch((error) => violations.push(String(error)));
    return true;
  };
  const { origin, close } = await serve({ mounts: [{ path: '/', folder, headers }], respond });
  try {
    return await use({ origin, violations, violated });
  } finally {
    await close();
  }
}
