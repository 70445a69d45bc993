// `npm start`: sets up, builds, and serves the documentation, the demo and the benchmark until it is interrupted.

import { join } from 'node:path';
import { build } from './build.mjs';
import { buildDocs, DOCS } from './docs.mjs';
import { DOCS_POLICY, ISOLATED, STRICT_POLICY, serve } from './server.mjs';
import { SITE } from './site.mjs';
import { main, step } from './tools.mjs';

const PORT = Number(process.env['PORT'] ?? 8080);

await main(async () => {
  await build();
  await step('documentation', () => buildDocs());
  const options = {
    mounts: [
      { path: '/', folder: DOCS, headers: DOCS_POLICY, gzip: true },
      { path: '/demo/', folder: join(SITE, 'demo'), headers: STRICT_POLICY },
      { path: '/bench/', folder: join(SITE, 'bench'), headers: ISOLATED },
    ],
    redirects: { '/demo': '/demo/', '/bench': '/bench/' },
  };
  const { origin } = await serve({ ...options, port: PORT }).catch((error) => {
    if (error.code !== 'EADDRINUSE' && error.code !== 'EACCES') throw error;
    console.log(`Port ${PORT} is taken; using a free one.`);
    return serve(options);
  });
  console.log(
    `\nDocumentation  ${origin}/\nDemo           ${origin}/demo/\nBenchmark      ${origin}/bench/\n\nCtrl+C stops the server.`,
  );
});
