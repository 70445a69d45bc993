// A static file server for pages of this project: the demo, the benchmark and the browser tests.
// Invariants: only files below a mounted folder are ever read; the mount of a page sets what the page may do.

import { createReadStream } from 'node:fs';
import { stat } from 'node:fs/promises';
import { createServer } from 'node:http';
import { extname, join, resolve, sep } from 'node:path';
import { createGzip } from 'node:zlib';

const TYPES = new Map([
  ['.html', 'text/html; charset=utf-8'],
  ['.js', 'text/javascript; charset=utf-8'],
  ['.mjs', 'text/javascript; charset=utf-8'],
  ['.css', 'text/css; charset=utf-8'],
  ['.json', 'application/json; charset=utf-8'],
  ['.map', 'application/json; charset=utf-8'],
  ['.tsv', 'text/tab-separated-values; charset=utf-8'],
  ['.txt', 'text/plain; charset=utf-8'],
  ['.wasm', 'application/wasm'],
  ['.svg', 'image/svg+xml'],
  ['.png', 'image/png'],
  ['.ico', 'image/x-icon'],
  ['.woff2', 'font/woff2'],
]);

/** The policy that the package promises to work under: WebAssembly, but no eval, no inline code, no other host. */
export const STRICT_POLICY = {
  'Content-Security-Policy':
    "default-src 'self'; script-src 'self' 'wasm-unsafe-eval'; worker-src 'self'; style-src 'self'; img-src 'self' data:",
};

/**
 * The policy of the documentation: its code has inline colours, and its console imports the visitor's code, which it has as a blob.
 */
export const DOCS_POLICY = {
  'Content-Security-Policy': STRICT_POLICY['Content-Security-Policy']
    .replace("'wasm-unsafe-eval'", "'wasm-unsafe-eval' blob:")
    .replace("style-src 'self'", "style-src 'self' 'unsafe-inline'"),
};

/** Cross-origin isolation: users of the package do not need it; only the benchmark has it, for its finer clock. */
export const ISOLATED = {
  'Cross-Origin-Opener-Policy': 'same-origin',
  'Cross-Origin-Embedder-Policy': 'require-corp',
};

/**
 * A folder and the path it is served under; the longest matching path wins. With `gzip`, every file is compressed on its way.
 * @typedef {{ path: string, folder: string, headers?: Record<string, string>, gzip?: boolean }} Mount
 */

/**
 * The file that a request path names, or undefined when it lies outside of every mount.
 * @param {string} path the path of the request, still encoded
 * @param {readonly Mount[]} mounts
 * @returns {{ file: string, mount: Mount } | undefined}
 */
export function locate(path, mounts) {
  let decoded;
  try {
    decoded = decodeURIComponent(path);
  } catch {
    return undefined;
  }
  if (decoded.includes('\0') || decoded.includes('\\')) return undefined;
  const [mount] = mounts.filter((m) => decoded.startsWith(m.path)).sort((a, b) => b.path.length - a.path.length);
  if (!mount) return undefined;
  const folder = resolve(mount.folder);
  const file = resolve(folder, `.${sep}${decoded.slice(mount.path.length)}`);
  return file === folder || file.startsWith(folder + sep) ? { file, mount } : undefined;
}

/**
 * Answers a request that is for no file, and returns whether it did.
 * @typedef {(path: string, request: import('node:http').IncomingMessage, response: import('node:http').ServerResponse) => boolean} Respond
 */

/**
 * Serves the mounts on this machine only.
 * @param {{ mounts: readonly Mount[], port?: number, redirects?: Record<string, string>, respond?: Respond }} options
 *   `port` 0 (the default) takes any free one; `respond` is asked before the mounts.
 * @returns {Promise<{ origin: string, port: number, close: () => Promise<void> }>}
 */
export function serve({ mounts, port = 0, redirects = {}, respond }) {
  const server = createServer(async (request, response) => {
    const path = (request.url ?? '/').split(/[?#]/, 1)[0] ?? '/';
    const headers = { 'Cache-Control': 'no-cache', 'X-Content-Type-Options': 'nosniff' };
    const end = (
      /** @type {number} */ status,
      /** @type {Record<string, string>} */ more,
      /** @type {string} */ text,
    ) => response.writeHead(status, { ...headers, 'Content-Type': 'text/plain; charset=utf-8', ...more }).end(text);
    if (respond?.(path, request, response)) return response;
    if (request.method !== 'GET' && request.method !== 'HEAD')
      return end(405, { Allow: 'GET, HEAD' }, 'GET or HEAD only');
    const target = redirects[path];
    if (target) return end(302, { Location: target }, target);
    const found = locate(path, mounts);
    if (!found) return end(404, {}, 'Not found');
    let { file } = found;
    let info = await stat(file).catch(() => undefined);
    if (info?.isDirectory()) {
      if (!path.endsWith('/')) return end(302, { Location: `${path}/` }, `${path}/`);
      file = join(file, 'index.html');
      info = await stat(file).catch(() => undefined);
    }
    if (!info?.isFile()) return end(404, {}, 'Not found');
    const { gzip } = found.mount;
    response.writeHead(200, {
      ...headers,
      ...found.mount.headers,
      'Content-Type': TYPES.get(extname(file)) ?? 'application/octet-stream',
      ...(gzip ? { 'Content-Encoding': 'gzip' } : { 'Content-Length': info.size }),
    });
    if (request.method === 'HEAD') return response.end();
    const content = createReadStream(file).on('error', () => response.destroy());
    return (gzip ? content.pipe(createGzip()) : content).pipe(response);
  });
  return new Promise((done, fail) => {
    server.once('error', fail);
    server.listen(port, '127.0.0.1', () => {
      const address = server.address();
      const bound = typeof address === 'object' && address ? address.port : port;
      done({
        origin: `http://localhost:${bound}`,
        port: bound,
        close: () =>
          new Promise((closed) => {
            server.close(() => closed());
            server.closeAllConnections();
          }),
      });
    });
  });
}
