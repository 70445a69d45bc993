/** The command for the numbers of a store: stats. */

import type { RecoveryReport, StoreStats } from '../types.ts';
import { type Command, STORE } from './command.ts';
import { Exit } from './exit.ts';
import { folderOf, isUrl, withFolder } from './place.ts';
import { RemoteStore } from './remote.ts';
import { count, plural, size } from './text.ts';

export const stats: Command = {
  name: 'stats',
  usage: 'STORE',
  summary: 'shows the size and the state of a store',
  options: STORE,
  notes: ['For a URL it shows the numbers of /metrics.'],
  async run(call) {
    const { args, output, signal } = call;
    const place = args[0]!;
    if (isUrl(place)) {
      const numbers = parseMetrics(await new RemoteStore(place, signal).metrics());
      if (output.isJson) await output.result(Object.fromEntries(numbers));
      else
        await output.table(
          numbers.map(([name, number]) => [name, count(number)]),
          [1],
        );
      return Exit.ok;
    }
    const folder = folderOf(place);
    return withFolder(folder, call, {}, async (store) => {
      const [numbers, entries] = [await store.stats(), await store.count({ signal })];
      if (output.isJson) {
        await output.result({ name: folder.name, entries, recovery: store.recovery, ...numbers });
        return Exit.ok;
      }
      await output.table(rowsOf(entries, store.recovery, numbers));
      return Exit.ok;
    });
  },
};

function rowsOf(entries: number, recovery: RecoveryReport, { levels, log, memtable, disk, sequence }: StoreStats) {
  return [
    ['entries', count(entries)],
    ['on disk', size(disk.bytes)],
    ['last sequence', count(sequence)],
    ['last session', FOUND[recovery.state]],
    ['log', `${plural(log.segments, 'segment', 'segments')}, ${plural(memtable.entries, 'write', 'writes')} in memory`],
    ...levels.flatMap(({ tables, bytes, entries }, level) =>
      tables === 0
        ? []
        : [
            [
              `level ${level}`,
              `${plural(tables, 'table', 'tables')}, ${size(bytes)}, ${plural(entries, 'entry', 'entries')}`,
            ],
          ],
    ),
  ];
}

const FOUND: Readonly<Record<RecoveryReport['state'], string>> = {
  new: 'none',
  clean: 'closed the store',
  replayed: 'did not close the store; its log was replayed',
  torn: 'did not close the store; its log was replayed up to a torn record',
  lost: 'the store is gone',
};

/** The store's own numbers of a page of metrics, without the labels of the store. */
function parseMetrics(page: string): (readonly [string, number])[] {
  return page.split('\n').flatMap((line) => {
    const [, name = '', level, number = ''] =
      /^varve_(?!http_)(\w+)\{store="[^}]*?"(?:,level="(\d+)")?\} (\S+)$/.exec(line) ?? [];
    return name === '' ? [] : [[level === undefined ? name : `${name}_${level}`, Number(number)] as const];
  });
}
