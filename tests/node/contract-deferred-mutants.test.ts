/**
 * Every clause of the contract for storages that commit later can fail. Each storage here has one defect. The clause that names the
 * defect must fail, and every clause has such a storage.
 */

import { expect, test } from 'vitest';
import type { DeferredDevice } from '../../js/src/storage/device.ts';
import { deferredClauses, deferredPowerClauses, deferredRoomClauses } from '../../js/src/testing/deferred.ts';
import { storageContract } from '../../js/src/testing.ts';
import { clauseNamed, expectCaught } from './support/caught.ts';
import { ChunkAdapter } from './support/chunk-adapter.ts';
import { tools, wasm } from './support/engine.ts';

/** A storage whose devices commit later. It is sound except for the differences of its device. */
class Mutant extends ChunkAdapter {
  readonly change: (device: DeferredDevice) => Partial<Record<keyof DeferredDevice, unknown>>;

  constructor(change: Mutant['change']) {
    super();
    this.change = change;
  }

  override async open(name: string): Promise<DeferredDevice> {
    const device = await super.open(name);
    const changed = this.change(device);
    return new Proxy(device as DeferredDevice, {
      has: (_, property) =>
        property in device && !(property in changed && changed[property as 'committed'] === undefined),
      get(_, property) {
        if (property in changed) return changed[property as 'committed'];
        const value: unknown = Reflect.get(device, property, device);
        return typeof value === 'function' ? value.bind(device) : value;
      },
    });
  }
}

const MUTANTS: [what: string, change: Mutant['change'], clause: string][] = [
  [
    'a commit that never comes',
    () => ({ committed: () => new Promise(() => undefined) }),
    'a write is read back at once',
  ],
  [
    'attempts that are answered with bytes missing',
    () => ({
      attempt: (call: () => unknown) => {
        try {
          return { value: call() };
        } catch {
          return { value: undefined };
        }
      },
    }),
    'an attempt reports that',
  ],
  [
    'bytes that are held and go all the same',
    (device) => ({
      fetch: async () => {
        const held: Parameters<typeof device.unpin>[0][number][] = [];
        await device.fetch(held);
        device.unpin(held);
      },
      unpin: () => undefined,
    }),
    'an attempt reports that',
  ],
  [
    'an error of a call taken for missing bytes',
    (device) => ({ resident: async (call: () => unknown) => device.resident(call).catch(() => undefined) }),
    'an attempt reports that',
  ],
  [
    'attempts to recover that are not taken back',
    (device) => ({ recover: (call: () => unknown) => device.resident(call) }),
    'a call that recovers writes',
  ],
  [
    'writes apart that are not there yet when they resolve',
    (device) => {
      const late: (() => Promise<void>)[] = [];
      return {
        writeApart: async (slot: number, bytes: Uint8Array, at: number) => {
          late.push(() => device.writeApart(slot, bytes, at, false));
        },
        committed: async () => {
          await device.committed();
          for (const write of late.splice(0)) void write().catch(() => undefined);
        },
      };
    },
    'bytes written apart are there',
  ],
  [
    'discarding that cuts the slot',
    (device) => ({ discard: async (slot: number) => device.truncate(slot, 4096) }),
    'bytes written apart are there',
  ],
  [
    'writes apart that end all others where there is no room for them',
    (device) => ({
      writeApart: (slot: number, bytes: Uint8Array, at: number) => {
        device.write(slot, bytes, at);
        return device.committed();
      },
    }),
    'a write apart that finds no room',
  ],
  ['devices that do not say that they commit later', () => ({ committed: undefined }), 'a synchronous store'],
  [
    'turns of which a part is written with the next one',
    (device) => ({
      write: (slot: number, bytes: Uint8Array, at: number) => {
        if (slot !== 2) return device.write(slot, bytes, at);
        const copy = bytes.slice();
        setImmediate(() => device.write(slot, copy, at));
        return bytes.length;
      },
    }),
    'a loss of power takes whole turns',
  ],
  [
    'a lack of room that is not reported',
    (device) => ({ committed: () => device.committed().catch(() => undefined) }),
    'a full storage refuses the commit of a write',
  ],
  [
    'writes that are taken after a failure, and lead nowhere',
    (device) => {
      let isFull = false;
      return {
        committed: () =>
          device.committed().catch((error: unknown) => {
            isFull = true;
            throw error;
          }),
        write: (slot: number, bytes: Uint8Array, at: number) => (isFull ? bytes.length : device.write(slot, bytes, at)),
      };
    },
    'a full storage refuses the commit of a write',
  ],
  [
    'going back that leaves what was refused in memory',
    (device) => {
      let size = 0;
      return {
        size: (slot: number) => Math.max(device.size(slot), slot === 0 ? size : 0),
        goBack: () => {
          size = device.size(0);
          return device.goBack();
        },
      };
    },
    'a full storage that can go back',
  ],
  [
    'going back after which nothing is kept',
    (device) => {
      let isBack = false;
      return {
        goBack: () => {
          isBack = true;
          return device.goBack();
        },
        write: (slot: number, bytes: Uint8Array, at: number) => (isBack ? bytes.length : device.write(slot, bytes, at)),
      };
    },
    'a full storage that can go back',
  ],
];

/** The clauses for storages that commit later, by name. */
function clausesFor(change: Mutant['change']): Map<string, () => Promise<void>> {
  const clauses = new Map<string, () => Promise<void>>();
  storageContract({
    test: (name, run) => clauses.set(name, run),
    deferred: true,
    create: () => new Mutant(change),
    losePower: ({ states }) => {
      for (const state of states.values()) state.losePower();
    },
    setRoom: (storage, bytes) => storage.setRoom(bytes),
    wasm,
    tools,
  });
  return clauses;
}

test.each(MUTANTS)('%s: caught', async (_, change, start) => {
  await expectCaught(clausesFor(change), start);
});

test('every clause for storages that commit later is failed by some, and none by a sound one', async () => {
  const clauses = clausesFor(() => ({}));
  const failed = new Set(MUTANTS.map(([, , start]) => clauseNamed(clauses, start)));
  const names = [...deferredClauses, ...deferredPowerClauses, ...deferredRoomClauses].map(({ name }) => name);
  expect(names.filter((name) => !failed.has(name))).toEqual([]);
  for (const name of names) await clauses.get(name)?.();
});
