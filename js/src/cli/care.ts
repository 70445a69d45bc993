/** The commands that care for a store in files: check, repair, compact. */

import { keyToJson } from '../http/json-key.ts';
import { untilAborted } from '../runtime/until-aborted.ts';
import type { CheckProblem, LostPart, RepairReport } from '../tools/types.ts';
import type { Key } from '../types.ts';
import { type Command, STORE } from './command.ts';
import { Exit, taken, wrong } from './exit.ts';
import {
  bytesIn,
  encryptionOf,
  exists,
  folderIn,
  folderOf,
  LOCK_TIMEOUT,
  mustExist,
  storageOf,
  withFolder,
} from './place.ts';
import { count, keyText, plural, size } from './text.ts';

export const check: Command = {
  name: 'check',
  usage: 'STORE',
  summary: 'verifies every block and every record of a store; changes nothing',
  options: { 'lock-timeout': STORE['lock-timeout']!, 'key-file': STORE['key-file']! },
  notes: ['The exit code is 5 if there is damage. Without its key, the checksums of an encrypted store are verified.'],
  async run({ args, flags, output, signal }) {
    const folder = folderOf(args[0]!);
    await mustExist(folder);
    const { storage, check: checkStore } = await storageOf(folder.root);
    const report = await checkStore(folder.name, {
      storage,
      ...(await encryptionOf(flags)),
      lockTimeout: flags.integer('lock-timeout', 0) ?? LOCK_TIMEOUT,
      signal,
      onProgress: ({ done, total }) => output.progress(() => `checking ${size(done)} of ${size(total)}`),
    });
    const { ok, tables, entries, segments, records, bytes, withoutKey, problems } = report;
    const inTables = withoutKey ? '' : ` (${plural(entries, 'entry', 'entries')})`;
    const checked = `${plural(tables, 'table', 'tables')}${inTables}, ${plural(segments, 'log segment', 'log segments')} (${plural(records, 'record', 'records')}), ${size(bytes)}`;
    const hint = withoutKey
      ? ['The store is encrypted: only its checksums were verified. --key-file FILE verifies the rest.']
      : [];
    if (ok) {
      await output.result(report, `Sound: ${checked}.`, ...hint);
      return Exit.ok;
    }
    const advice = `\`varve repair ${folder.path}\` saves the rest into a new store.`;
    await output.result(
      report,
      ...problems.map(problemLine),
      `${plural(problems.length, 'problem', 'problems')} in ${checked}. ${advice}`,
      ...hint,
    );
    return Exit.damaged;
  },
};

function problemLine({ file, offset, message }: CheckProblem): string {
  return `${file}${offset === undefined ? '' : `, byte ${offset}`}: ${message}`;
}

export const repair: Command = {
  name: 'repair',
  usage: 'STORE',
  summary: 'saves all intact data of a damaged store into a new store beside it',
  options: {
    into: { value: 'NAME', help: "the name of the new store (default: the store's name with -repaired)" },
    'drop-older': { help: 'leave out entries that can be older than lost ones' },
    'lock-timeout': STORE['lock-timeout']!,
    'key-file': STORE['key-file']!,
  },
  notes: ['The damaged store stays as it is. The exit code is 5 if data is lost.'],
  async run({ args, flags, output, signal }) {
    const folder = folderOf(args[0]!);
    await mustExist(folder);
    const into = flags.text('into') ?? `${folder.name}-repaired`;
    if (/[/\\]/.test(into))
      throw wrong('--into is the name of the new store, which is beside the damaged one. It is no path.');
    const target = folderIn(folder.root, into);
    if (await exists(target)) throw taken(`There is a store at ${target.path} already. Name another one with --into.`);
    const { storage, repair: repairStore } = await storageOf(folder.root);
    const report = await repairStore(folder.name, {
      storage,
      into,
      dropOlder: flags.has('drop-older'),
      ...(await encryptionOf(flags)),
      lockTimeout: flags.integer('lock-timeout', 0) ?? LOCK_TIMEOUT,
      signal,
      onProgress: ({ done, total }) => output.progress(() => `repairing ${size(done)} of ${size(total)}`),
    });
    const lost = report.lost.map((part) => ({ ...part, from: keyJson(part.from), to: keyJson(part.to) }));
    await output.result({ ...report, path: target.path, lost }, ...repairLines(report, target.path));
    return report.mayResurrect || report.lost.some(({ data }) => data) ? Exit.damaged : Exit.ok;
  },
};

function keyJson(key: Key | undefined): unknown {
  return key === undefined ? undefined : keyToJson(key);
}

function repairLines({ entries, segments, lost, older, sealed, mayResurrect }: RepairReport, path: string): string[] {
  return [
    ...lost.map(lostLine),
    `${plural(entries, 'entry is', 'entries are')} in the new store ${path}.`,
    lost.length === 0
      ? 'Every block and record could be read.'
      : `${plural(lost.length, 'part', 'parts')} could not be read.`,
    ...(older === 0 ? [] : [`${plural(older, 'entry', 'entries')} can be older than lost ones.`]),
    ...(sealed || segments === 0 ? [] : ['The store was not closed: its last writes can be missing.']),
    ...(mayResurrect ? ['No list of tables could be read: deleted keys can be back.'] : []),
  ];
}

function lostLine({ file, offset, bytes, message, data, from, to }: LostPart): string {
  const where = `${file}, byte ${offset}${bytes === undefined ? '' : ` (${count(bytes)} bytes)`}`;
  if (!data) return `${where}: ${message}; no entries`;
  // An end that is bytes can be a place between keys, which means nothing to a person.
  const isKnown = (key: Key | undefined): key is Key => key !== undefined && !(key instanceof Uint8Array);
  const bounds = [...(isKnown(from) ? [`from ${keyText(from)}`] : []), ...(isKnown(to) ? [`to ${keyText(to)}`] : [])];
  return `${where}: ${message}; entries${bounds.length === 0 ? '' : ` ${bounds.join(' ')}`} can be missing`;
}

export const compact: Command = {
  name: 'compact',
  usage: 'STORE',
  summary: 'merges all tables, and gives back the room of deleted and overwritten data',
  options: STORE,
  async run(call) {
    const { args, output, signal } = call;
    const folder = folderOf(args[0]!);
    const before = await withFolder(folder, call, {}, async (store) => {
      const { disk } = await store.stats();
      const work = store.compact({
        onProgress: ({ done, total }) => output.progress(() => `merging ${size(done)} of ${size(total)}`),
      });
      await untilAborted(work, signal);
      return disk.bytes;
    });
    // Closing gives back the room that the store had set aside.
    const after = bytesIn(folder.path);
    await output.result({ before, after }, `${size(before)} before, ${size(after)} now.`);
    return Exit.ok;
  },
};
