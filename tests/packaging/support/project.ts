// A fresh project outside of the repository, in which npm has installed the tarball, and nothing else.
//
// Invariant: `varve` is found in the project's own node_modules only: no folder above it has one. Build tools are links to
// those of the repository, which find their own dependencies there.

import { spawn } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, readdirSync, realpathSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterAll, inject, onTestFinished } from 'vitest';
import { root } from '../../../scripts/tools.mjs';

/** Far more than any tool needs on a busy machine. */
const LIMIT_MS = 500_000;

/** Texts, by their paths in a project. */
type Files = Readonly<Record<string, string>>;

/** A project with the package in it, some files, and links to development dependencies of the repository. Its first use makes it. */
export class Project {
  readonly #files: Files;
  readonly #tools: readonly string[];
  #folder: string | undefined;

  private constructor(files: Files, tools: readonly string[]) {
    this.#files = files;
    this.#tools = tools;
  }

  /** A project of the running test. */
  static forTest(files: Files = {}, tools: readonly string[] = []): Project {
    const project = new Project(files, tools);
    onTestFinished(() => project.#remove());
    return project;
  }

  /** A project of all tests of a file. */
  static forFile(files: Files = {}, tools: readonly string[] = []): Project {
    const project = new Project(files, tools);
    afterAll(() => project.#remove());
    return project;
  }

  /** Its path, with links resolved. */
  get folder(): string {
    if (this.#folder === undefined) {
      this.#folder = realpathSync(mkdtempSync(join(tmpdir(), 'varve-project-')));
      cpSync(inject('template'), this.#folder, { recursive: true });
      this.write(this.#files);
      for (const name of this.#tools) {
        const link = this.path('node_modules', name);
        mkdirSync(dirname(link), { recursive: true });
        symlinkSync(join(root, 'node_modules', name), link, 'junction');
      }
    }
    return this.#folder;
  }

  /** A path in it. */
  path(...parts: readonly string[]): string {
    return join(this.folder, ...parts);
  }

  /** Writes files, by their paths in the project. */
  write(files: Files): void {
    for (const [path, text] of Object.entries(files)) {
      mkdirSync(dirname(this.path(path)), { recursive: true });
      writeFileSync(this.path(path), text);
    }
  }

  /** The content of one of its folders. */
  list(...parts: readonly string[]): string[] {
    return readdirSync(this.path(...parts), { recursive: true, encoding: 'utf8' });
  }

  /** Runs a program in it; returns what it wrote to both outputs, and throws that if it fails. */
  run(command: string, ...args: readonly string[]): Promise<string> {
    return run(this.folder, command, args);
  }

  /** Starts a program in it that ends with the test; resolves with the first output that matches. */
  serve(pattern: RegExp, command: string, ...args: readonly string[]): Promise<RegExpExecArray> {
    return serve(this.folder, pattern, command, args);
  }

  #remove(): void {
    if (this.#folder !== undefined) rmSync(this.#folder, { recursive: true, force: true, maxRetries: 5 });
  }
}

/** The environment of a program that is not a part of the tests. */
function environment(): NodeJS.ProcessEnv {
  const { NODE_ENV, VITEST, FORCE_COLOR, ...env } = process.env;
  return { ...env, NO_COLOR: '1' };
}

function run(cwd: string, command: string, args: readonly string[]): Promise<string> {
  return new Promise((resolve, reject) => {
    const child = spawn(command, args, {
      cwd,
      stdio: ['ignore', 'pipe', 'pipe'],
      env: environment(),
      timeout: LIMIT_MS,
      killSignal: 'SIGKILL',
    });
    let said = '';
    for (const stream of [child.stdout, child.stderr]) {
      stream.setEncoding('utf8').on('data', (text: string) => {
        said += text;
      });
    }
    child.once('error', reject);
    child.once('close', (code, signal) => {
      if (code === 0) resolve(said);
      else reject(new Error(`${[command, ...args].join(' ')} ended with ${signal ?? code}:\n${said}`));
    });
  });
}

function serve(cwd: string, pattern: RegExp, command: string, args: readonly string[]): Promise<RegExpExecArray> {
  return new Promise((resolve, reject) => {
    const child = spawn(command, args, { cwd, stdio: ['ignore', 'pipe', 'pipe'], env: environment() });
    onTestFinished(
      () =>
        new Promise<void>((ended) => {
          child.once('exit', () => ended());
          if (!child.kill('SIGKILL')) ended();
        }),
    );
    let said = '';
    for (const stream of [child.stdout, child.stderr]) {
      stream.setEncoding('utf8').on('data', (text: string) => {
        said += text;
        const found = pattern.exec(said);
        if (found) resolve(found);
      });
    }
    child.once('error', reject);
    child.once('close', () => reject(new Error(`${[command, ...args].join(' ')} ended:\n${said}`)));
  });
}
