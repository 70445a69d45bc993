// Platform names that the declarations of this package mention, for programs whose `lib` has no DOM (Node, Bun): without this file
// their compilers would not know these names. Where the DOM is known, these are merged into it and change nothing.
// Shipped as dist/global.d.ts, which every entry's declarations refer to.

// biome-ignore-all lint/suspicious/noEmptyInterface: they are empty so that they merge with whatever there is.

/// <reference lib="esnext.disposable" />

interface Worker {}
interface ErrorEvent {}
interface CryptoKey {}
interface SubtleCrypto {}
declare namespace WebAssembly {
  interface Module {}
  interface Memory {}
}
