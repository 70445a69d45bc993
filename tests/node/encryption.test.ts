/** Key slots: what opens them, what changes them, and what is refused. */

import { readFileSync, writeFileSync } from 'node:fs';
import fc from 'fast-check';
import { afterEach, describe, expect, test, vi } from 'vitest';
import { DATA_KEYS_MAX, numbersOf } from '../../js/src/encryption/data-keys.ts';
import { addKey, changeKey, createSlots, removeKey, rotate, unlock } from '../../js/src/encryption/slots.ts';
import type { EncryptionKey } from '../../js/src/encryption/types.ts';
import { deriveKey, type UserKey, userKey } from '../../js/src/encryption/user-key.ts';

const wrong = expect.objectContaining({ code: 'VARVE_KEY', message: expect.stringContaining('The key is wrong') });
const invalid = expect.objectContaining({ code: 'VARVE_INVALID_ARGUMENT' });
const damaged = expect.objectContaining({ code: 'VARVE_KEY', message: expect.stringContaining('damaged') });

/** The fewest iterations, so that tests are fast. */
const FEW = { iterations: 100_000 };
/** Passphrases take a tenth of a second each. */
const PATIENT = { timeout: 30_000 };

const bytes = (seed: number): Uint8Array => new Uint8Array(32).fill(seed);
const secret = (seed: number): Promise<UserKey> => userKey(bytes(seed));
const imported = (algorithm: string, usages: KeyUsage[], seed = 7): Promise<CryptoKey> =>
  crypto.subtle.importKey('raw', new Uint8Array(32).fill(seed), algorithm, false, usages);

/** A key of each kind, and of each way to use it. */
const KINDS: Record<string, () => Promise<EncryptionKey>> = {
  bytes: async () => bytes(7),
  'an ArrayBuffer': async () => bytes(7).buffer as ArrayBuffer,
  'a passphrase': () => deriveKey('correct horse', FEW),
  'HKDF, deriveKey': () => imported('HKDF', ['deriveKey']),
  'HKDF, deriveBits': () => imported('HKDF', ['deriveBits']),
  'AES-GCM, encrypt': () => imported('AES-GCM', ['encrypt', 'decrypt']),
  'AES-GCM, wrapKey': () => imported('AES-GCM', ['wrapKey', 'unwrapKey']),
  'AES-KW': () => imported('AES-KW', ['wrapKey', 'unwrapKey']),
};

afterEach(() => {
  vi.restoreAllMocks();
});

describe('a key', () => {
  test.each(Object.entries(KINDS))('opens its slot: %s', PATIENT, async (_, make) => {
    const { keys, slots } = await createSlots(await userKey(await make()));
    expect(numbersOf(keys)).toEqual([1]);
    // Workers get a copy.
    const copy = structuredClone(await userKey(await make()));
    expect(await unlock(slots, copy)).toEqual(keys);
    await expect(unlock(slots, await secret(8))).rejects.toEqual(wrong);
    await expect(unlock(slots, await userKey(await imported('AES-GCM', ['decrypt'], 8)))).rejects.toEqual(wrong);
    await expect(unlock(slots, await userKey(await deriveKey('Correct horse', FEW)))).rejects.toEqual(wrong);
  });

  test('of the same bytes is the same key in another form', async () => {
    const { keys, slots } = await createSlots(await secret(7));
    for (const name of ['an ArrayBuffer', 'HKDF, deriveKey', 'HKDF, deriveBits'] as const) {
      expect(await unlock(slots, await userKey(await KINDS[name]!()))).toEqual(keys);
    }
    const aes = await createSlots(await userKey(await imported('AES-GCM', ['wrapKey', 'unwrapKey'])));
    expect(await unlock(aes.slots, await userKey(await imported('AES-GCM', ['decrypt'])))).toEqual(aes.keys);
  });

  test('may be overwritten after the call', async () => {
    const given = bytes(7);
    const pending = userKey(given);
    given.fill(0);
    const { keys, slots } = await createSlots(await secret(7));
    expect(await unlock(slots, await pending)).toEqual(keys);
  });

  test('that can only open cannot make a slot', async () => {
    const reader = await userKey(await imported('AES-GCM', ['decrypt']));
    await expect(createSlots(reader)).rejects.toEqual(invalid);
    await expect(createSlots(await userKey(await imported('AES-KW', ['unwrapKey'])))).rejects.toEqual(invalid);
  });

  test('of a wrong form is refused', async () => {
    const { publicKey } = (await crypto.subtle.generateKey('Ed25519', false, ['sign', 'verify'])) as CryptoKeyPair;
    const pbkdf2 = await crypto.subtle.importKey('raw', bytes(1) as Uint8Array<ArrayBuffer>, 'PBKDF2', false, [
      'deriveBits',
    ]);
    const gcm = await imported('AES-GCM', ['encrypt']);
    const forms = [
      ...[
        undefined,
        null,
        'passphrase',
        12,
        {},
        [],
        new Uint8Array(31),
        new ArrayBuffer(33),
        new DataView(new ArrayBuffer(32)),
      ],
      ...[publicKey, pbkdf2, gcm, { passphrase: pbkdf2, iterations: 1 }, { passphrase: gcm, iterations: 600_000 }],
    ];
    for (const form of forms) await expect(userKey(form as never)).rejects.toEqual(invalid);
    await expect(deriveKey('')).rejects.toEqual(invalid);
    await expect(deriveKey(undefined as never)).rejects.toEqual(invalid);
    for (const iterations of [99_999, 10_000_001, 600_000.5, Number.NaN, '600000']) {
      await expect(deriveKey('x', { iterations } as never)).rejects.toEqual(invalid);
    }
    await expect(deriveKey('x', { rounds: 1 } as never)).rejects.toEqual(invalid);
  });

  test('needs crypto.subtle', async () => {
    vi.spyOn(globalThis.crypto, 'subtle', 'get').mockReturnValue(undefined as never);
    await expect(secret(1)).rejects.toMatchObject({ code: 'VARVE_UNSUPPORTED' });
  });

  test('is a passphrase in either form of Unicode', PATIENT, async () => {
    const { keys, slots } = await createSlots(await userKey(await deriveKey('caf\u00e9', FEW)));
    // The slot has its own number of iterations.
    expect(await unlock(slots, await userKey(await deriveKey('cafe\u0301')))).toEqual(keys);
  });
});

type Change = { readonly kind: 'add' | 'remove' | 'change' | 'rotate'; readonly a: number; readonly b: number };

/** Which keys there are after a change; undefined if it is refused. */
function after({ kind, a, b }: Change, there: readonly number[]): readonly number[] | undefined {
  const others = there.filter((i) => i !== a);
  // A change that is made already leaves everything as it is.
  if (others.length === there.length) return kind === 'change' && there.includes(b) ? there : undefined;
  if (kind === 'add') return there.includes(b) ? there : [...there, b];
  if (kind === 'change') return [...others, b];
  if (kind === 'rotate') return [a];
  return others.length === 0 ? undefined : others;
}

test('any order of changes leaves exactly the slots of the keys that are there, and every data key that is in use', async () => {
  const kind = fc.constantFrom('add', 'remove', 'change', 'rotate');
  const change: fc.Arbitrary<Change> = fc.record({ kind, a: fc.nat(5), b: fc.nat(5) });
  const users = await Promise.all([1, 2, 3, 4, 5, 6].map(secret));
  const make = ({ kind, a, b }: Change, slots: Uint8Array<ArrayBuffer>, inUse: number[]): ReturnType<typeof addKey> => {
    const [from, to] = [users[a]!, users[b]!];
    const calls = {
      add: () => addKey(slots, from, to),
      remove: () => removeKey(slots, from),
      change: () => changeKey(slots, from, to),
      rotate: () => rotate(slots, [from], { removeOthers: true, inUse }),
    };
    return calls[kind]();
  };
  await fc.assert(
    fc.asyncProperty(fc.array(change, { maxLength: 12 }), async (changes) => {
      let { keys, slots } = await createSlots(users[0]!);
      let there: readonly number[] = [0];
      for (const change of changes) {
        const [before, inUse] = [slots.slice(), numbersOf(keys).slice(-3)];
        const next = after(change, there);
        const made = make(change, slots, inUse);
        if (next === undefined) await expect(made).rejects.toMatchObject({ name: 'VarveError' });
        expect(slots).toEqual(before);
        if (next === undefined) continue;
        const numbers = change.kind === 'rotate' ? [...inUse, inUse.at(-1)! + 1] : numbersOf(keys);
        ({ keys, slots } = await made);
        expect(numbersOf(keys)).toEqual(numbers);
        there = next;
        const opened = await Promise.allSettled(users.map((user) => unlock(slots, user)));
        expect(opened).toEqual(
          users.map((_, i) =>
            there.includes(i) ? { status: 'fulfilled', value: keys } : { status: 'rejected', reason: wrong },
          ),
        );
      }
    }),
    { numRuns: 15 },
  );
});

// Story: a leader made a change and ended before it answered, so the next leader was asked for the same change. It rejected with
// "Nothing was changed", and a key that was added twice took two of the 16 slots.
test('a key that is changed or added twice leaves the slots as they are the second time', async () => {
  const [a, b, c] = await Promise.all([secret(1), secret(2), secret(3)]);
  const created = await createSlots(a);
  const changed = await changeKey(created.slots, a, b);
  expect(await changeKey(changed.slots, a, b)).toEqual(changed);
  const added = await addKey(changed.slots, b, a);
  expect(await addKey(added.slots, b, a)).toEqual(added);
  // A wrong key adds nothing, and puts nothing in the place of another.
  await expect(addKey(added.slots, c, a)).rejects.toEqual(wrong);
  await expect(changeKey(changed.slots, a, c)).rejects.toEqual(wrong);
});

test('the last of 16 keys is added twice, a further one is not', async () => {
  const users = await Promise.all(Array.from({ length: 17 }, (_, i) => secret(i + 1)));
  let { slots } = await createSlots(users[0]!);
  for (const user of users.slice(1, 16)) ({ slots } = await addKey(slots, users[0]!, user));
  expect((await addKey(slots, users[0]!, users[15]!)).slots).toEqual(slots);
  await expect(addKey(slots, users[0]!, users[16]!)).rejects.toEqual(invalid);
});

describe('a rotation', () => {
  test('refuses while keys are missing, and names how many', async () => {
    const [a, b] = await Promise.all([secret(1), secret(2)]);
    const { slots, keys } = await addKey((await createSlots(a)).slots, a, b);
    const all = { removeOthers: false, inUse: [1] };
    await expect(rotate(slots, [a], all)).rejects.toMatchObject({
      code: 'VARVE_KEY',
      message: expect.stringContaining('one key slot'),
    });
    await expect(rotate(slots, [a, await secret(3)], all)).rejects.toEqual(wrong);
    await expect(rotate(slots, [], all)).rejects.toEqual(invalid);
    const next = await rotate(slots, [a, b], all);
    expect(numbersOf(next.keys)).toEqual([1, 2]);
    expect(next.keys.slice(0, 34)).toEqual(keys);
    expect(await unlock(next.slots, a)).toEqual(await unlock(next.slots, b));
  });

  test('refuses when files of too many data keys are left', async () => {
    const a = await secret(1);
    let { keys, slots } = await createSlots(a);
    const inUse = (): number[] => numbersOf(keys);
    while (numbersOf(keys).length < DATA_KEYS_MAX) {
      ({ keys, slots } = await rotate(slots, [a], { removeOthers: false, inUse: inUse() }));
    }
    await expect(rotate(slots, [a], { removeOthers: false, inUse: inUse() })).rejects.toEqual(invalid);
    const last = await rotate(slots, [a], { removeOthers: false, inUse: [3] });
    expect(numbersOf(last.keys)).toEqual([3, DATA_KEYS_MAX, DATA_KEYS_MAX + 1]);
  });
});

describe('damage', () => {
  test('at any byte is noticed, and affects the slot of that byte only', PATIENT, async () => {
    const [a, b] = await Promise.all([secret(1), secret(2)]);
    const { slots, keys } = await addKey((await createSlots(a)).slots, a, b);
    const head = 16;
    const half = (slots.length - head) / 2;
    for (let at = 0; at < slots.length; at++) {
      const copy = slots.slice();
      copy[at]! ^= 1 << (at % 8);
      const results = await Promise.allSettled([unlock(copy, a), unlock(copy, b)]);
      const own = at < head ? -1 : Math.floor((at - head) / half);
      for (const [i, result] of results.entries()) {
        if (own === 1 - i) expect(result).toEqual({ status: 'fulfilled', value: keys });
        else expect(result).toEqual({ status: 'rejected', reason: damaged });
      }
    }
    for (const end of [0, 3, 15, 16, slots.length - 1])
      await expect(unlock(slots.slice(0, end), a)).rejects.toEqual(damaged);
    await expect(unlock(Uint8Array.of(...slots, 0), a)).rejects.toEqual(damaged);
  });

  test('arbitrary bytes are refused', () =>
    fc.assert(
      fc.asyncProperty(fc.uint8Array({ maxLength: 600 }), async (noise) => {
        await expect(unlock(noise, await secret(1))).rejects.toEqual(damaged);
      }),
    ));

  test('that was sealed with its checks made anew is a wrong key', async () => {
    const a = await secret(1);
    const { slots } = await createSlots(a);
    for (const at of [16 + 8, 16 + 104, 16 + 116, 16 + 300]) {
      const copy = slots.slice();
      copy[at]! ^= 1;
      const slot = copy.subarray(16, -28);
      copy.set(new Uint8Array(await crypto.subtle.digest('SHA-256', slot)).subarray(0, 28), copy.length - 28);
      await expect(unlock(copy, a)).rejects.toEqual(wrong);
    }
  });

  test('a slot of a later kind is passed over, and is the reason if no other one opens', async () => {
    const [a, b] = await Promise.all([secret(1), secret(2)]);
    const { slots, keys } = await addKey((await createSlots(a)).slots, a, b);
    const half = (slots.length - 16) / 2;
    for (const [at, byte] of [
      [0, 5],
      [0, 0],
      [1, 1],
      [3, 0x80],
    ] as const) {
      const copy = slots.slice();
      const slot = copy.subarray(16, 16 + half);
      slot[at] = byte;
      const check = new Uint8Array(await crypto.subtle.digest('SHA-256', slot.slice(0, -28)));
      slot.set(check.subarray(0, 28), half - 28);
      expect(await unlock(copy, a, b)).toEqual(keys);
      const later = { code: 'VARVE_VERSION', message: expect.stringContaining('newer version') };
      for (const user of [a, await secret(3)]) await expect(unlock(copy, user)).rejects.toMatchObject(later);
      await expect(removeKey(copy, a)).rejects.toMatchObject(later);
    }
  });

  test('slots of a later version are refused by their version', async () => {
    const { slots } = await createSlots(await secret(1));
    slots[4] = 2;
    slots.set(new Uint8Array(await crypto.subtle.digest('SHA-256', slots.slice(0, 8))).subarray(0, 8), 8);
    await expect(unlock(slots, await secret(1))).rejects.toMatchObject({ code: 'VARVE_VERSION' });
  });
});

describe('the golden file', () => {
  const file = new URL('golden/key-slots-v1.varve', import.meta.url);

  /** Slots of one key of each kind, whose random bytes are all the same. */
  async function made(): Promise<Uint8Array> {
    vi.spyOn(crypto, 'getRandomValues').mockImplementation((into) => {
      (into as unknown as Uint8Array).fill(0x5a);
      return into;
    });
    const [first, ...others] = await users();
    let { slots } = await createSlots(first!);
    for (const user of others) ({ slots } = await addKey(slots, first!, user));
    return slots;
  }

  async function users(): Promise<UserKey[]> {
    const keys = ['bytes', 'a passphrase', 'AES-GCM, encrypt', 'AES-KW'] as const;
    return Promise.all(keys.map(async (name) => userKey(await KINDS[name]!())));
  }

  // `VARVE_BLESS=1 npx vitest run encryption`, for a new format version only.
  test.runIf(process.env['VARVE_BLESS'] !== undefined)('is written anew', PATIENT, async () => {
    writeFileSync(file, await made());
  });

  test('opens with each of its keys, and is written again byte for byte', PATIENT, async () => {
    const golden = new Uint8Array(readFileSync(file));
    for (const user of await users()) {
      expect(await unlock(golden, user)).toEqual(Uint8Array.of(1, 0, ...new Uint8Array(32).fill(0x5a)));
    }
    expect(await made()).toEqual(golden);
  });
});
