// The parts of Node's modules that are used, so that the package compiles, and its declarations can be read, without @types/node.

declare module 'node:fs' {
  interface Stats {
    readonly size: number;
    readonly ino: number;
    readonly dev: number;
    readonly mtimeMs: number;
    isFile(): boolean;
    isSymbolicLink(): boolean;
  }
  interface Dirent {
    readonly name: string;
    isFile(): boolean;
  }
  export const constants: {
    readonly O_RDWR: number;
    readonly O_CREAT: number;
    readonly O_EXCL: number;
    readonly O_NOFOLLOW?: number;
  };
  export function openSync(path: string, flags: number | string, mode?: number): number;
  export function closeSync(fd: number): void;
  export function readSync(fd: number, buffer: Uint8Array, offset: number, length: number, position: number): number;
  export function writeSync(fd: number, buffer: Uint8Array, offset: number, length: number, position: number): number;
  export function fsyncSync(fd: number): void;
  export function fdatasyncSync(fd: number): void;
  export function ftruncateSync(fd: number, bytes: number): void;
  export function fstatSync(fd: number): Stats;
  export function existsSync(path: string): boolean;
  export function statSync(path: string): Stats;
  export function lstatSync(path: string): Stats;
  export function statfsSync(path: string): { readonly bavail: number; readonly bsize: number };
  export function readdirSync(path: string): string[];
  export function readdirSync(path: string, options: { withFileTypes: true }): Dirent[];
  export function readFileSync(path: string, encoding: 'utf8'): string;
  export function readlinkSync(path: string): string;
  export function utimesSync(path: string, atime: Date, mtime: Date): void;
  export function mkdirSync(path: string): void;
  export function rmdirSync(path: string): void;
  export function unlinkSync(path: string): void;
}

declare module 'node:os' {
  export function hostname(): string;
}

declare module 'node:path' {
  export function basename(path: string): string;
  export function dirname(path: string): string;
  export function join(...parts: string[]): string;
  export function resolve(...parts: string[]): string;
}

declare module 'node:process' {
  export function kill(pid: number, signal: 0): true;
  export const pid: number;
}

declare module 'node:url' {
  export function fileURLToPath(url: URL | string): string;
}

declare module 'node:worker_threads' {
  export const threadId: number;
  export class Worker {
    constructor(script: URL, options?: { name?: string });
    postMessage(message: object, transfer?: readonly ArrayBuffer[]): void;
    on(type: 'message', listener: (message: never) => void): void;
    on(type: 'error', listener: (error: Error) => void): void;
    on(type: 'exit', listener: (code: number) => void): void;
    terminate(): Promise<number>;
    ref(): void;
    unref(): void;
  }
  export const parentPort: {
    postMessage(message: object, transfer?: readonly ArrayBuffer[]): void;
    on(type: 'message', listener: (message: never) => void): void;
  } | null;
}
