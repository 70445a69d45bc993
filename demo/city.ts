// A city, and every key it is stored under.
// Invariant: the keys of a city follow from its fields alone, so that an edit knows which to delete and which to set.
//
//   ['city', id]                              the record
//   ['name', folded name, -population, id]    type-ahead, and the list by alphabet
//   ['country', code, -population, id]        the list of a country, largest first
//   ['top', first letters, -population, id]   the largest cities behind 0 to 3 letters, for large cities only

import type { Key } from 'varve';

export interface City {
  readonly id: number;
  readonly name: string;
  /** ISO 3166 code of two letters. */
  readonly country: string;
  readonly population: number;
  readonly latitude: number;
  readonly longitude: number;
  /** GeoNames feature code, `PPLC` for a capital. */
  readonly feature: string;
  /** The visitor's note. */
  readonly note: string;
}

/** The data that the index keys carry, so that a list needs no second read. */
export type Summary = readonly [country: string, name: string];

/** Only cities of at least this size are stored under their first letters. */
const TOP_POPULATION = 50_000;
/** The most letters that have a list of their own. */
export const TOP_LETTERS = 3;

export function recordKey(id: number): Key {
  return ['city', id];
}

/** The keys that find a city; the value of each is its summary. */
export function indexKeys(city: City): Key[] {
  const name = fold(city.name);
  const keys: Key[] = [
    ['name', name, -city.population, city.id],
    ['country', city.country, -city.population, city.id],
  ];
  if (city.population >= TOP_POPULATION) {
    const letters = [...name];
    for (let n = 0; n <= Math.min(TOP_LETTERS, letters.length); n += 1) {
      keys.push(['top', letters.slice(0, n).join(''), -city.population, city.id]);
    }
  }
  return keys;
}

export function summaryOf(city: City): Summary {
  return [city.country, city.name];
}

/** Letters that do not decompose into a base letter and a mark. */
const LETTERS: Record<string, string> = {
  ß: 'ss',
  æ: 'ae',
  œ: 'oe',
  ø: 'o',
  đ: 'd',
  ð: 'd',
  þ: 'th',
  ł: 'l',
  ħ: 'h',
  ı: 'i',
  ə: 'e',
};

/** A name in the form used to sort and search: lower case, without accents, words separated by one space. */
export function fold(text: string): string {
  return text
    .normalize('NFD')
    .replaceAll(/\p{M}/gu, '')
    .toLowerCase()
    .replaceAll(/[^\p{L}\p{N}]+/gu, ' ')
    .replaceAll(/[ßæœøđðþłħıə]/g, (letter) => LETTERS[letter] ?? letter)
    .trim();
}

/** How many characters of a name a folded prefix covers. */
export function coveredLength(name: string, prefix: string): number {
  if (prefix === '') return 0;
  for (let end = 1; end <= name.length; end += 1) {
    if (fold(name.slice(0, end)).startsWith(prefix)) return end;
  }
  return 0;
}

/** One line of cities.tsv. */
export function parseCity(line: string): City {
  const [id = '', name = '', country = '', population = '', latitude = '', longitude = '', feature = ''] =
    line.split('\t');
  return {
    id: Number(id),
    name,
    country,
    population: Number(population),
    latitude: Number(latitude),
    longitude: Number(longitude),
    feature,
    note: '',
  };
}
