// `npm start`: sets up, builds, and serves the guide, the demo and the benchmark until it is interrupted.

import { join } from 'node:path';
import { build } from './build.mjs';
import { ISOLATED, STRICT_POLICY, serve } from './server.mjs';
import { main, root } from './tools.mjs';

const PORT = Number(process.env['PORT'] ?? 8080);

await main(async () => {
  await build();
  const site = join(root, 'build', 'site');
  const options = {
    mounts: [
      { path: '/guide/', folder: join(site, 'guide'), headers: STRICT_POLICY },
      { path: '/demo/', folder: join(site, 'demo'), headers: STRICT_POLICY },
      { path: '/bench/', folder: join(site, 'bench'), headers: ISOLATED },
    ],
    redirects: { '/': '/demo/', '/guide': '/guide/', '/demo': '/demo/', '/bench': '/bench/' },
  };
  const { origin } = await serve({ ...options, port: PORT }).catch((error) => {
    if (error.code !== 'EADDRINUSE' && error.code !== 'EACCES') throw error;
    console.log(`Port ${PORT} is taken; using a free one.`);
    return serve(options);
  });
  console.log(
    `\nGuide      ${origin}/guide/\nDemo       ${origin}/demo/\nBenchmark  ${origin}/bench/\n\nCtrl+C stops the server.`,
  );
});
