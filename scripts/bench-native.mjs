// `npm run bench:native -- micro|scale [options]`: builds crates/varve-bench, a separate workspace, and runs one of its
// benches. Nothing else builds that crate: fjall, redb and RocksDB take minutes.

import { join } from 'node:path';
import { setup } from './setup.mjs';
import { main, Problem, root, run } from './tools.mjs';

const HELP = `npm run bench:native -- micro [options]    ns, bytes and allocations of single operations
npm run bench:native -- scale [options]    millions of pairs: time, files, memory

--help after the name lists its options. RocksDB is C++ and needs libclang (Debian: apt-get install clang libclang-dev)
for a quarter of an hour of building: --no-rocksdb, before the name, leaves it out.`;

/** @type {Record<string, string[]>} */
const BENCHES = { micro: ['bench', '--bench', 'micro'], scale: ['run', '--release', '--bin', 'scale'] };

await main(async () => {
  const args = process.argv.slice(2);
  const isWithout = args[0] === '--no-rocksdb';
  if (isWithout) args.shift();
  const without = isWithout ? ['--no-default-features'] : [];
  const [name, ...rest] = args;
  const bench = name !== undefined && Object.hasOwn(BENCHES, name) ? BENCHES[name] : undefined;
  if (bench === undefined) throw new Problem(HELP);
  await setup({ rust: true });
  const [command, ...options] = bench;
  const manifest = join(root, 'crates', 'varve-bench', 'Cargo.toml');
  await run('cargo', [command, '--quiet', '--manifest-path', manifest, ...options, ...without, '--', ...rest]);
});
