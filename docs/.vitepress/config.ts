/** The site of the documentation: its pages are Markdown files of the repository, which stay where they are. */

import { createHash } from 'node:crypto';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { defineConfig } from 'vitepress';
import { GUIDE, idOf, linkPages, NO_PAGES, pageOf, REFERENCE, sidebar } from './pages.ts';

const root = fileURLToPath(new URL('../..', import.meta.url)).replace(/\/$/, '');

export default defineConfig({
  title: 'Varve',
  description: 'An embedded, durable, ordered key-value store for the browser and the edge',
  srcDir: root,
  outDir: join(root, 'build', 'site', 'docs'),
  cacheDir: join(root, 'build', 'vitepress'),
  srcExclude: NO_PAGES,
  rewrites: (file) => pageOf(file) ?? file,
  head: [['link', { rel: 'icon', href: '/demo/icon.svg', type: 'image/svg+xml' }]],
  // Scripts in a page would need a looser Content-Security-Policy: they become files.
  metaChunk: true,
  transformHtml: (html, _, { siteConfig: { outDir } }) =>
    html.replaceAll(/<script id="[\w-]+">([^<]+)<\/script>/g, (_, code: string) => {
      const name = `assets/${createHash('sha256').update(code).digest('hex').slice(0, 8)}.js`;
      mkdirSync(join(outDir, 'assets'), { recursive: true });
      writeFileSync(join(outDir, name), code);
      return `<script src="/${name}"></script>`;
    }),
  // A page of the reference has hundreds of headings.
  transformPageData: ({ relativePath }) =>
    relativePath.startsWith('reference/') ? { frontmatter: { outline: 2, prev: false, next: false } } : undefined,
  // A first visit loads the page itself and nothing else.
  router: { prefetchLinks: false },
  markdown: {
    anchor: { slugify: idOf },
    config: (md) => linkPages(md, root),
  },
  vite: { publicDir: join(root, 'docs', 'public'), build: { chunkSizeWarningLimit: 4096 } },
  themeConfig: {
    logo: '/demo/icon.svg',
    nav: [
      { text: 'Guide', link: '/guide/', activeMatch: '^/(guide|coming-from|recipes)/' },
      { text: 'Reference', link: '/reference/' },
      { text: 'Figures', link: '/results' },
      { text: 'Demo', link: '/demo/', target: '_self' },
      { text: 'Benchmark', link: '/bench/', target: '_self' },
    ],
    sidebar: { '/': sidebar(root, GUIDE), '/reference/': sidebar(root, REFERENCE) },
    outline: [2, 3],
    search: { provider: 'local' },
    docFooter: { prev: 'Before', next: 'Next' },
  },
});
