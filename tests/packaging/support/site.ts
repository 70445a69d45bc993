// A built site on its own server: no COOP, no COEP, and the strictest policy that the package promises to work under.

import type { IncomingMessage, ServerResponse } from 'node:http';
import { text } from 'node:stream/consumers';
import { serve } from '../../../scripts/server.mjs';
import { readmeBlock } from '../../support/readme.ts';

/** Only scripts of the site, WebAssembly, workers of the site, and its files: as in the README. */
export const POLICY = readmeBlock('', 'default-src').trim();

/** The same, without permission to compile WebAssembly. */
export const POLICY_WITHOUT_WASM = POLICY.replace(" 'wasm-unsafe-eval'", '');

/** Where browsers report violations: the page gets no event for those in workers. */
const REPORTS = '/violations';

/** A served site. */
export interface Site {
  readonly origin: string;
  /** The reports so far, unchanged. */
  readonly violations: readonly string[];
  /** Resolves with the first report. */
  readonly violated: Promise<string>;
}

/** Serves a folder under a policy while `use` runs. A port is part of an origin: every call has its own stores. */
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
