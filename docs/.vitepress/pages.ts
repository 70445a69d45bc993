/**
 * Which files of the repository are pages of the site, at which addresses, and what the sidebar lists.
 *
 * Invariant: docs/guide/README.md lists every page, except those of the reference. A link in a page is one between files of the repository,
 * as on GitHub.
 */

import { readFileSync } from 'node:fs';
import { posix } from 'node:path';
import type { DefaultTheme, MarkdownRenderer } from 'vitepress';

/** The list of the pages, and that of the reference, which TypeDoc writes. */
export const GUIDE = 'docs/guide/README.md';
export const REFERENCE = 'build/reference/README.md';

/** Pages that are not in docs/. */
const OTHERS = ['ARCHITECTURE.md', 'FORMAT.md', 'TESTING.md', 'CONTRIBUTING.md', 'SECURITY.md', 'CHANGELOG.md'];

/** Every other Markdown file of the repository, as patterns. */
export const NO_PAGES = [
  ...['**/node_modules/**', 'target/**', 'build/!(reference)/**', 'bench/**', 'crates/**', 'dist/**', 'demo/**'],
  ...['js/**', 'tests/**', 'test-results/**', 'examples/*/**', 'README.md'],
];

/** The page of a file, as a path below the site: `guide/tabs.md` for `docs/guide/tabs.md`. Undefined if no page shows the file. */
export function pageOf(file: string): string | undefined {
  if (OTHERS.includes(file)) return file.toLowerCase();
  const [, page] = /^(?:docs\/|build\/(?=reference)|(?=examples\/README))(.+\.md)$/.exec(file) ?? [];
  return page?.replace(/\bREADME\.md$/, 'index.md');
}

/** The address of a link to `href` in a file. Undefined if the link leads to no page and no other site. */
function addressOf(href: string, file: string): string | undefined {
  if (/^([\w+.-]+:|[#/])/.test(href)) return href;
  const [path = '', anchor] = href.split('#');
  const page = pageOf(posix.join(posix.dirname(file), path));
  return page && `/${page.replace(/\bindex\.md$/, '')}${anchor ? `#${anchor}` : ''}`;
}

/** A link to a file that is no page becomes its text. */
export function linkPages(md: MarkdownRenderer, root: string): void {
  md.core.ruler.push('pages', ({ tokens, env }) => {
    // The title of a page is rendered without the page.
    const file = posix.relative(root, env.realPath ?? env.path ?? root);
    for (const { children } of tokens) {
      let isDropped = false;
      for (const token of children ?? []) {
        if (token.type === 'link_open') {
          const address = addressOf(token.attrGet('href') ?? '', file);
          isDropped = address === undefined;
          if (address !== undefined) token.attrSet('href', address);
        }
        if (isDropped && /^link_(open|close)$/.test(token.type)) token.type = 'text';
      }
    }
  });
}

/** The groups of a sidebar: the links of a list, by its headings. */
export function sidebar(root: string, list: string): DefaultTheme.SidebarItem[] {
  const groups: (DefaultTheme.SidebarItem & { items: DefaultTheme.SidebarItem[] })[] = [];
  for (const line of readFileSync(posix.join(root, list), 'utf8').split('\n')) {
    const [, heading] = /^## (.+)$/.exec(line) ?? [];
    const [, text = '', href] = /^[-*] \[(.+?)\]\((.+?)\)/.exec(line) ?? [];
    if (heading) groups.push({ text: heading, items: [] });
    if (href) groups.at(-1)?.items.push({ text: text.replaceAll('`', ''), link: addressOf(href, list) ?? href });
  }
  return groups;
}

/** The id of a heading, as GitHub makes it. */
export function idOf(heading: string): string {
  return heading
    .trim()
    .toLowerCase()
    .replaceAll(/[^\p{L}\p{N}_ -]/gu, '')
    .replaceAll(' ', '-');
}
