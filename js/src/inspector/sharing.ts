/** How tabs share a store, in words. */

import type { SharingReport } from '../types.ts';
import { plural } from './format.ts';

/** Which tab leads, and how many there are. */
export function sharingText({ leads, via, clients }: SharingReport): string {
  const others = plural(clients - 1, 'other tab', 'other tabs');
  if (leads && clients === 1) return 'This tab leads the store, and has it to itself.';
  if (leads) return `This tab leads; ${others} ${clients === 2 ? 'shares' : 'share'} the store.`;
  const way = via === 'port' ? 'a port' : 'a channel';
  return `Another tab leads; this one reaches the store over ${way}. ${plural(clients, 'tab', 'tabs')} in all.`;
}
