// Builds the guide (docs/guide/*.md) into pages that look like the demo. A link to another page of the guide becomes a link to its page.
// A link to any other file of the repository becomes its text, because no page shows that file.

import { copyFileSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { Marked } from 'marked';
import { root } from './tools.mjs';

const GUIDE = join(root, 'docs', 'guide');
const DEMO = join(root, 'demo');
const BESIDE = [join(DEMO, 'base.css'), join(DEMO, 'pages.css'), join(DEMO, 'icon.svg'), join(GUIDE, 'guide.css')];

/** The keyboard can scroll an element that has the focus. */
const SCROLLER = '<$1 tabindex="0">';

const marked = new Marked({
  renderer: {
    heading({ tokens, depth, text }) {
      return `<h${depth} id="${idOf(text)}">${this.parser.parseInline(tokens)}</h${depth}>\n`;
    },
    link({ href, tokens }) {
      const text = this.parser.parseInline(tokens);
      return href.startsWith('../') ? text : `<a href="${href.replace(/^[\w-]+\.md/, pageOf)}">${text}</a>`;
    },
  },
});

/**
 * Builds the pages.
 * @param {string} to
 */
export function buildGuide(to) {
  mkdirSync(to, { recursive: true });
  for (const file of BESIDE) copyFileSync(file, join(to, basename(file)));
  for (const name of readdirSync(GUIDE).filter((file) => file.endsWith('.md'))) {
    const text = readFileSync(join(GUIDE, name), 'utf8');
    writeFileSync(join(to, pageOf(name)), htmlOf(text));
  }
}

/** @param {string} name */
function pageOf(name) {
  return name === 'README.md' ? 'index.html' : name.replace(/md$/, 'html');
}

/**
 * The id of a heading, as GitHub makes it.
 * @param {string} heading
 */
function idOf(heading) {
  return heading
    .toLowerCase()
    .replaceAll(/[^\w -]/g, '')
    .replaceAll(' ', '-');
}

/** @param {string} text */
function htmlOf(text) {
  const title = text.slice(2, text.indexOf('\n'));
  return `<!doctype html>
<html lang="en">
  <head>
    <meta charset="utf-8" />
    <meta name="viewport" content="width=device-width, initial-scale=1" />
    <meta name="color-scheme" content="light dark" />
    <title>${title} | Varve</title>
    <link rel="icon" href="./icon.svg" type="image/svg+xml" />
    <link rel="stylesheet" href="./base.css" />
    <link rel="stylesheet" href="./pages.css" />
    <link rel="stylesheet" href="./guide.css" />
  </head>
  <body>
    <header>
      <nav class="views" aria-label="Parts of this site">
        <a href="./">The guide</a>
        <a href="../demo/">Demo</a>
        <a href="../bench/">Benchmark</a>
      </nav>
      <div class="band" aria-hidden="true"></div>
    </header>
    <main>
${marked.parse(text, { async: false }).replaceAll(/<(pre|table)>/g, SCROLLER)}
    </main>
  </body>
</html>
`;
}
