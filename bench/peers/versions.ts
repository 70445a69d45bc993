/**
 * The versions of the peers' libraries, which the build of the pages reads from their package.json (scripts/peers.mjs).
 */

declare const PEER_VERSIONS: Readonly<Record<string, string>>;

/** The version of the package `name` that is bundled into this page; undefined outside of the built pages. */
export function versionOf(name: string): string | undefined {
  return typeof PEER_VERSIONS === 'undefined' ? undefined : PEER_VERSIONS[name];
}
