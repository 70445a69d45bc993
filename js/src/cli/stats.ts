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
  notes: ['Of a URL it does not show how the last session ended.'],
  async run(call) {
    const { args, output, signal } = call;
    const place = args[0]!;
    const show = async (name: string, entries: number, recovery: RecoveryReport | undefined, numbers: StoreStats) => {
      if (output.isJson) await output.result({ name, entries, recovery, ...numbers });
      else await output.table(rowsOf(entries, recovery, numbers));
      return Exit.ok;
    };
    if (isUrl(place)) {
      const store = new RemoteStore(place, signal);
      const { name, ...numbers } = await store.stats();
      return show(name, await store.count(), undefined, numbers);
    }
    const folder = folderOf(place);
    return withFolder(folder, call, {}, async (store) => {
      const numbers = await store.stats();
      return show(folder.name, await store.count({ signal }), store.recovery, numbers);
    });
  },
};

function rowsOf(
  entries: number,
  recovery: RecoveryReport | undefined,
  { levels, log, memtable, disk, sequence }: StoreStats,
) {
  return [
    ['entries', count(entries)],
    ['on disk', size(disk.bytes)],
    ['last sequence', count(sequence)],
    ...(recovery === undefined ? [] : [['last session', FOUND[recovery.state]]]),
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
