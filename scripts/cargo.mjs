// Runs cargo with the project's toolchain: `node scripts/cargo.mjs <cargo arguments>`.

import { setup } from './setup.mjs';
import { main, run } from './tools.mjs';

await main(async () => {
  await setup({ rust: true });
  await run('cargo', process.argv.slice(2));
});
