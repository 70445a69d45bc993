// The part of the platform's module that this package uses. Not shipped: in a program, the platform's own types replace it.

declare module 'cloudflare:workers' {
  export abstract class DurableObject<Env = unknown> {
    protected readonly ctx: import('./platform.ts').ObjectContext;
    protected readonly env: Env;
    constructor(ctx: import('./platform.ts').ObjectContext, env: Env);
  }
}

declare module '*.wasm' {
  const module: WebAssembly.Module;

  // biome-ignore lint/style/noDefaultExport: the form of a wasm module on workerd.
  export default module;
}
