/**
 * The browser's report about the storage of the whole origin.
 *
 * Invariant: asking changes nothing, and it is no error when a browser does not report it.
 */

import type { OriginStorage } from '../types.ts';

/** Usage and quota of the origin; undefined where the browser does not report them. */
export async function originStorage(): Promise<OriginStorage | undefined> {
  try {
    const { storage } = navigator;
    const [{ quota, usage }, persisted] = await Promise.all([storage.estimate(), storage.persisted?.()]);
    return quota === undefined || usage === undefined ? undefined : { usageBytes: usage, quotaBytes: quota, persisted };
  } catch {
    return undefined;
  }
}
