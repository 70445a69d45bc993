// The page "Encrypt it": the bytes of a store before and after encrypt(), and which passphrases open it.
// Invariant: the store is made for this and deleted when the experiment begins. The page shows bytes as they are in the files.

import { deleteStore, deriveKey, open, type Store, VarveError } from 'varve';
import { sentence } from '../js/src/inspector/errors.ts';
import { experiment } from './break/experiment.ts';
import { filesOf, largestTable } from './break/slot-files.ts';
import type { Timeline } from './break/timeline.ts';
import { byId, setText } from './dom.ts';
import { formatCount, plural } from './format.ts';

type Notes = Store<number, { title: string; text: string }>;

const STORE = 'encrypt-it';
const NOTES = 200;
/** In the text of every note. */
const WORDS = 'A secret of the lake';
const ROWS = 8;
const ROW_BYTES = 16;

/** A place in a file of the store. */
interface Place {
  readonly name: string;
  readonly offset: number;
}

experiment('encrypt', encrypt);
if (typeof globalThis.FileSystemFileHandle?.prototype.createWritable !== 'function') {
  byId('encrypt-run', HTMLButtonElement).disabled = true;
  setText(
    byId('encrypt-note', HTMLElement),
    'This browser lets no page read the files of OPFS, so there is nothing to show.',
  );
}
document.body.dataset['state'] = 'ready';

async function encrypt(timeline: Timeline): Promise<void> {
  const [first, second] = ['encrypt-first', 'encrypt-second'].map((id) => byId(id, HTMLInputElement).value);
  if (first === undefined || second === undefined || first === '' || second === '' || first === second) {
    timeline.add('reported', 'Give two passphrases that differ.');
    return;
  }
  for (const part of ['before', 'after']) show(part, '', '');
  await make(timeline);
  const db: Notes = await open(STORE, { storage: 'opfs' });
  await db.encrypt({ key: await deriveKey(first) });
  await db.close();
  timeline.add('done', `encrypt() wrote all files anew, under a random data key that the passphrase "${first}" opens.`);
  await look(timeline);
  await refuse(timeline, 'without a key');
  await refuse(timeline, 'with a wrong passphrase', `not ${first}`);
  const again: Notes = await open(STORE, { storage: 'opfs', encryption: { key: await deriveKey(first) } });
  await again.changeEncryptionKey(await deriveKey(first), await deriveKey(second));
  await again.close();
  timeline.add('done', `changeEncryptionKey() made "${second}" the passphrase. The notes were not written again.`);
  await refuse(timeline, 'with the passphrase from before', first);
  await read(timeline, second);
}

/** Makes a store without a key, and shows a note in its files. */
async function make(timeline: Timeline): Promise<void> {
  await deleteStore(STORE);
  const db: Notes = await open(STORE, { storage: 'opfs' });
  await db.setMany(
    Array.from({ length: NOTES }, (_, i) => [i, { title: `Note ${i}`, text: `${WORDS}, number ${i}.` }] as const),
  );
  await db.close();
  const found = await search();
  const [place] = found;
  if (place === undefined) throw new Error('The files of a store without a key do not show its notes.');
  timeline.add('done', `Made a store of ${formatCount(NOTES)} notes without a key.`);
  timeline.add('reported', `Its files show "${WORDS}" ${plural(found.length, 'time', 'times')}.`);
  show('before', `Before: ${place.name}, from byte ${formatCount(place.offset)} on`, await dump(place));
}

/** Searches the files of the encrypted store, and shows a piece of one. */
async function look(timeline: Timeline): Promise<void> {
  const found = await search();
  if (found.length > 0)
    timeline.add('wrong', `The files still show "${WORDS}" ${plural(found.length, 'time', 'times')}.`);
  else timeline.add('verified', `No file of the store shows "${WORDS}" any more.`);
  const { handle, start } = await largestTable(STORE);
  show(
    'after',
    `After: ${handle.name}, a table, from byte ${formatCount(start)} on`,
    await dump({ name: handle.name, offset: start }),
  );
}

/** Opens the store in a way that must be refused. */
async function refuse(timeline: Timeline, how: string, passphrase?: string): Promise<void> {
  try {
    const options = passphrase === undefined ? {} : { encryption: { key: await deriveKey(passphrase) } };
    const db: Notes = await open(STORE, { storage: 'opfs', ...options });
    await db.close();
    timeline.add('wrong', `The store opened ${how}.`);
  } catch (error) {
    if (!(error instanceof VarveError) || error.code !== 'VARVE_KEY') throw error;
    timeline.add('reported', `Opening it ${how}: ${sentence(error)}`);
  }
}

async function read(timeline: Timeline, passphrase: string): Promise<void> {
  const db: Notes = await open(STORE, { storage: 'opfs', encryption: { key: await deriveKey(passphrase) } });
  let right = 0;
  for await (const [number, { text }] of db.entries()) right += Number(text === `${WORDS}, number ${number}.`);
  const { problems } = await db.check();
  await db.close();
  const isWhole = right === NOTES && problems.length === 0;
  timeline.add(
    isWhole ? 'verified' : 'wrong',
    `With "${passphrase}" the store opens: ${formatCount(right)} of ${formatCount(NOTES)} notes are as they were written, and check() found ${plural(problems.length, 'problem', 'problems')}.`,
  );
}

/** Every place where the files of the store show the words. */
async function search(): Promise<Place[]> {
  const places: Place[] = [];
  for (const file of await filesOf(STORE)) {
    // One character for each byte.
    const text = new TextDecoder('latin1').decode(await file.arrayBuffer());
    for (let at = text.indexOf(WORDS); at >= 0; at = text.indexOf(WORDS, at + 1)) {
      places.push({ name: file.name, offset: Math.floor(at / ROW_BYTES) * ROW_BYTES });
    }
  }
  return places;
}

/** Bytes of a file, as numbers and as characters. */
async function dump({ name, offset }: Place): Promise<string> {
  const file = (await filesOf(STORE)).find((known) => known.name === name);
  const bytes = new Uint8Array(
    (await file?.slice(offset, offset + ROWS * ROW_BYTES).arrayBuffer()) ?? new ArrayBuffer(0),
  );
  const rows = Array.from({ length: Math.ceil(bytes.length / ROW_BYTES) }, (_, i) => {
    const row = [...bytes.subarray(i * ROW_BYTES, (i + 1) * ROW_BYTES)];
    const numbers = row.map((byte) => byte.toString(16).padStart(2, '0')).join(' ');
    return `${numbers}  ${row.map((byte) => (byte > 0x1f && byte < 0x7f ? String.fromCharCode(byte) : '·')).join('')}`;
  });
  return rows.join('\n');
}

function show(part: string, caption: string, text: string): void {
  setText(byId(`encrypt-${part}-text`, HTMLElement), caption);
  setText(byId(`encrypt-${part}`, HTMLElement), text);
}
