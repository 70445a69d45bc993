// The rooms of js/src, bench and tests, and the arrows between them. `npm run check` refuses any other import; an import of types is
// one too. Biome refuses cycles of files (`noImportCycles`), so a room may have no cycle inside either.
// Invariant: a room names only rooms that stand before it in its list, so no arrow points back.

/** @type {readonly (readonly [room: string, files: string, imports: string])[]} Files are regular expressions, below js/src. */
const ROOMS = [
  ['errors', 'errors[.]ts', ''],
  ['runtime', 'runtime/', ''],
  ['device', 'storage/(adapter|compactor-port|device)[.]ts', 'errors'],
  // The types of keys, which are options of other calls.
  ['keys', 'encryption/types[.]ts', ''],
  ['types', '(types|api)[.]ts', 'device keys'],
  ['options', 'options[.]ts', 'errors keys types'],
  ['encryption', 'encryption/(?!types[.])', 'errors keys options'],
  ['codec', 'codec/', 'errors types options'],
  ['protocol', 'protocol/', 'errors types encryption codec'],
  ['storage', 'storage/(?!(adapter|compactor-port|device)[.])', 'errors runtime device types'],
  ['wasm', 'wasm/', 'errors device types'],
  ['tools', 'tools/', 'errors runtime device keys types encryption codec protocol storage wasm'],
  ['compactor', 'compactor/', 'errors runtime device types storage wasm tools'],
  ['engine', 'engine/', 'errors runtime device types encryption protocol storage wasm tools compactor'],
  ['client', 'client/', 'errors runtime types codec protocol'],
  ['share', 'share/', 'errors device types encryption protocol storage client'],
  ['server', 'server/', 'errors runtime device types protocol storage wasm tools engine client share'],
  ['transaction', 'transaction/', 'errors runtime types options codec protocol'],
  ['portable', 'portable/', 'errors keys types options encryption codec protocol transaction'],
  ['changes', 'changes/', 'errors runtime types codec protocol client'],
  ['cache', 'cache/', 'runtime codec protocol client'],
  [
    'store',
    'store/',
    'errors runtime device keys types options encryption codec protocol tools client share transaction portable changes cache',
  ],
  [
    'synchronous',
    'synchronous/',
    'errors runtime keys types options encryption codec protocol wasm tools engine transaction portable store',
  ],
  [
    'cloudflare',
    'cloudflare/',
    'errors runtime device types options encryption codec storage protocol engine transaction store synchronous',
  ],
  ['shards', 'shards/', 'errors runtime types options codec cloudflare'],
  ['collections', 'collections(/|[.])', 'errors runtime types options codec transaction store'],
  ['http', 'http(/|[.])', 'errors runtime types options codec transaction'],
  // Keys and rows as people write them.
  ['rows', 'rows/', 'types transaction store http'],
  [
    'entries',
    '(cloudflare|common|deno-kv|fs|index|inline|shards|storage-adapter|synchronous)[.]ts',
    'errors runtime device keys types options encryption codec storage wasm tools engine client share server transaction portable changes cache store synchronous cloudflare shards',
  ],
  [
    'adapters',
    '(adapters/|(async-storage|unstorage|idb-keyval|abstract-level|yjs|automerge|zero)[.])',
    'errors types share store entries',
  ],
  ['react', 'react[.]ts', 'types changes store entries adapters'],
  // It opens stores as a program does, and writes keys as `varve/http` does.
  ['inspector', 'inspector(/|[.])', 'errors runtime types codec portable changes store http rows entries'],
  // The contract of storages opens stores as a program does.
  ['testing', 'testing(/|[.])', 'errors runtime device types options codec wasm entries'],
  // The command opens stores as a program does, and writes keys and values as `varve/http` does.
  ['cli', 'cli(/|[.])', 'errors runtime types codec storage tools portable http rows entries'],
];

/**
 * Of the benchmark, below bench. Its tests may import any room.
 * @type {typeof ROOMS}
 */
const BENCH_ROOMS = [
  ['core', 'core/', ''],
  ['peers', 'peers/', 'core'],
  ['suites', 'suites/', 'core peers'],
  ['targets', 'targets/', 'core peers suites'],
  ['ui', 'ui/', 'core peers suites targets'],
  ['results', 'results/', 'core peers suites targets'],
];

/**
 * Of the tests, below tests: one room for each project of vitest, and what they share.
 * @type {typeof ROOMS}
 */
const TEST_ROOMS = [
  ['support', 'support/', ''],
  ['node', 'node/', 'support'],
  // The pages that run in a browser. Other browsers run them, too.
  ['pages', 'browser/fixtures/', 'support'],
  ['browser', 'browser/', 'support pages'],
  ['engines', 'engines/', 'support pages'],
  ['runtimes', 'runtimes/', 'support'],
  ['packaging', 'packaging/', 'support'],
  ['adapters', 'adapters/', 'support'],
];

/**
 * Imports from elsewhere: packages, the platform, the compiled engine. The pages import the package as every program does.
 * @type {import('dependency-cruiser').IAllowedRuleType[]}
 */
const OUTSIDE = [
  { from: { path: '^js/src/storage/indexeddb/' }, to: { path: '^node_modules/idb/' } },
  { from: { path: '^js/src/(cli|inspector)/' }, to: { path: '^node_modules/(@types/)?papaparse/' } },
  { from: { path: '^js/src/(storage/fs/|compactor/|fs[.]|cli/)' }, to: { dependencyTypes: ['core'] } },
  { from: { path: '^js/src/cloudflare(/|[.])' }, to: { path: '^(cloudflare:|[.]/varve[.]wasm$)' } },
  { from: { path: '^js/src/react[.]ts$' }, to: { path: '^node_modules/(@types/)?react/' } },
  {
    from: { path: '^js/src/(abstract-level[.]|adapters/)' },
    to: { path: '^node_modules/(abstract-level|level-transcoder)/' },
  },
  { from: { path: '^js/src/yjs[.]ts$' }, to: { path: '^node_modules/yjs/' } },
  { from: { path: '^js/src/wasm/' }, to: { path: '^js/pkg/' } },
  { from: { path: '^demo/' }, to: { path: '^(demo/|node_modules/|varve(/|$))' } },
  // Elements, figures and errors look the same in the inspector and around it. A demo damages a table.
  {
    from: { path: '^demo/' },
    to: { path: '^js/src/(inspector/(dom|errors|format|sharing|live/svg)|tools/slot-page)[.]ts$' },
  },
  { from: { path: '^bench/.*[.]test[.]ts$' }, to: { path: '^(bench|tests/node/support)/' } },
  // They import the package, as every program does, or its files.
  { from: { path: '^(bench|tests)/' }, to: { pathNot: '^(js/src|demo|bench|tests)/' } },
  { from: { path: '^tests/' }, to: { path: '^(js/src|bench)/' } },
  { from: { path: '^scripts/' }, to: { pathNot: '^(js/src|demo|bench|tests)/' } },
];

/**
 * The allowed imports between the rooms of one list.
 * @param {string} folder
 * @param {typeof ROOMS} rooms
 * @returns {import('dependency-cruiser').IAllowedRuleType[]}
 */
function arrowsOf(folder, rooms) {
  const paths = new Map();
  return rooms.map(([room, files, imports]) => {
    const path = `^${folder}/${files}`;
    paths.set(room, path);
    const to = [room, ...imports.split(' ').filter(Boolean)].map((other) => {
      if (!paths.has(other)) throw new Error(`The room ${room} imports ${other}, which does not stand before it.`);
      return paths.get(other);
    });
    return { from: { path }, to: { path: to } };
  });
}

/** @type {import('dependency-cruiser').IConfiguration} */
export default {
  allowed: [
    ...arrowsOf('js/src', ROOMS),
    ...arrowsOf('bench', BENCH_ROOMS),
    ...arrowsOf('tests', TEST_ROOMS),
    ...OUTSIDE,
  ],
  allowedSeverity: 'error',
  options: { tsPreCompilationDeps: true, doNotFollow: { path: '(^|/)(node_modules|dist|js/pkg)/' } },
};
