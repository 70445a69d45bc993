/** The shown result as files, as Markdown on the clipboard, and as an address. */

import { markdown, type Result } from '../core/report.ts';
import { ENGINES } from '../peers/list.ts';
import { announce, byId, copyText } from './dom.ts';
import { download, fileName } from './download.ts';
import { figuresOf } from './row-columns.ts';
import { fragmentOf, LINK_MAX } from './share-link.ts';
import { toCsv } from './table-text.ts';

/** Makes the buttons work; `shown` is the result that the page shows. */
export function offerExports(shown: () => Result | undefined): void {
  const on = (id: string, act: (result: Result) => void): void => {
    byId(id).addEventListener('click', () => {
      const result = shown();
      if (result !== undefined) act(result);
    });
  };
  const name = ({ environment }: Result, ending: string): string => fileName(environment.date, ending);
  on('save-json', (result) => {
    download(name(result, 'json'), 'application/json', `${JSON.stringify(result, undefined, 2)}\n`);
  });
  on('save-csv', (result) => download(name(result, 'csv'), 'text/csv', toCsv(figuresOf(result))));
  on('save-markdown', (result) => download(name(result, 'md'), 'text/markdown', markdown(result, ENGINES)));
  on('copy-markdown', (result) => void copyText(markdown(result, ENGINES), 'The report as Markdown'));
  on('share', (result) => void share(result));
}

async function share(result: Result): Promise<void> {
  const fragment = await fragmentOf(result);
  if (fragment === undefined) {
    announce(`This result is too long for an address of ${LINK_MAX} characters: save it as JSON and send the file.`);
    return;
  }
  history.replaceState(null, '', `#${fragment}`);
  await copyText(location.href, 'The link to this result');
}
