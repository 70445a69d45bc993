// Writes the reference, one Markdown page for each entry point of the package, from the comments of js/src into build/reference.

import { readFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Application } from 'typedoc';

const root = fileURLToPath(new URL('../..', import.meta.url));

/** The names of the entry points that are imported for what they export, by their files. */
const entries = new Map(
  Object.keys(JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')).exports)
    .filter((entry) => !/\.\w+$/.test(entry))
    .map((entry) => [join(root, 'js', 'src', `${basename(entry).replace(/^\.$/, 'index')}.ts`), join('varve', entry)]),
);

const app = await Application.bootstrapWithPlugins({
  entryPoints: [...entries.keys()],
  tsconfig: join(root, 'tsconfig.build.json'),
  plugin: ['typedoc-plugin-markdown'],
  name: 'Reference',
  readme: 'none',
  out: join(root, 'build', 'reference'),
  router: 'module',
  useHTMLAnchors: true,
  sortEntryPoints: false,
  groupOrder: ['Functions', 'Classes', 'Interfaces', 'Type Aliases', 'Variables', '*'],
  logLevel: 'Error',
  skipErrorChecking: true,
  disableSources: true,
  excludeExternals: true,
  excludeInternal: true,
  excludePrivate: true,
  hidePageHeader: true,
  hideBreadcrumbs: true,
  hideGroupHeadings: true,
  parametersFormat: 'table',
  interfacePropertiesFormat: 'table',
  typeDeclarationFormat: 'table',
});
const project = await app.convert();
if (project === undefined) throw new Error('TypeDoc made no reference.');
for (const module of project.children ?? []) {
  module.name = entries.get(join(root, 'js', 'src', `${module.name}.ts`)) ?? module.name;
}
await app.generateOutputs(project);
