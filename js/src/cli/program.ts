/**
 * One run of the command: which command, its output, its signals, its exit code.
 *
 * Invariant: every error ends here as a sentence on standard error and an exit code. The first Ctrl-C ends the work and closes the
 * store; the second one ends the process.
 */

import { readFileSync } from 'node:fs';
import { type Command, helpOf, parse } from './command.ts';
import { COMMANDS } from './commands.ts';
import { CommandError, codeOf, Exit, exitOf, Interrupted, messageOf, outputError, wrong } from './exit.ts';
import { Output } from './output.ts';
import { shown } from './text.ts';

/** Runs the command with these arguments; resolves with the exit code. */
export async function run(args: readonly string[]): Promise<number> {
  // Behind `--` everything is a key or a value: `varve set notes flag -- --json`.
  const output = new Output(args.slice(0, [...args, '--'].indexOf('--')).includes('--json'));
  const abort = new AbortController();
  const onSignal = (signal: 'SIGINT' | 'SIGTERM'): void => {
    if (abort.signal.aborted) process.exit(new Interrupted(signal).exit);
    abort.abort(new Interrupted(signal));
  };
  process.on('SIGINT', onSignal).on('SIGTERM', onSignal);
  process.stdout.on('error', (error) => abort.abort(outputError(error)));
  // Notes and progress need no reader.
  process.stderr.on('error', () => undefined);
  let exit: number = Exit.ok;
  try {
    exit = await runCommand(args, output, abort.signal);
    await output.flush();
    output.clearProgress();
    return exit;
  } catch (error) {
    output.clearProgress();
    // An abort ends streams and requests with errors of their own.
    const cause = abort.signal.aborted && !(error instanceof CommandError) ? abort.signal.reason : error;
    // The result may be damage, also for a reader that has enough.
    return report(cause, output) || exit;
  } finally {
    process.stdin.destroy();
  }
}

async function runCommand(args: readonly string[], output: Output, signal: AbortSignal): Promise<number> {
  const [name, ...others] = args;
  if (name === undefined || name === '--help' || name === 'help') {
    const text = others[0] === undefined ? overview() : helpOf(find(others[0]));
    if (name !== undefined) await output.line(text);
    else process.stderr.write(`${text}\n`);
    return name === undefined ? Exit.usage : Exit.ok;
  }
  if (name === '--version') {
    const { version } = JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8')) as {
      version: string;
    };
    await output.line(version);
    return Exit.ok;
  }
  const command = find(name);
  const { args: given, flags } = parse(command, others);
  if (flags.has('help')) {
    await output.line(helpOf(command));
    return Exit.ok;
  }
  return command.run({ args: given, flags, output, signal });
}

function find(name: string): Command {
  const command = COMMANDS.find((candidate) => candidate.name === name);
  if (command !== undefined) return command;
  if (name.startsWith('-')) throw wrong(`The command comes first. \`varve --help\` lists the commands.`);
  throw wrong(`There is no command ${shown(name)}. The commands are ${COMMANDS.map((each) => each.name).join(', ')}.`);
}

function overview(): string {
  const width = Math.max(...COMMANDS.map(({ name, usage }) => `${name} ${usage}`.length));
  return [
    'varve: stores in files, and stores behind varve/http',
    '',
    ...COMMANDS.map(({ name, usage, summary }) => `  varve ${`${name} ${usage}`.padEnd(width)}  ${summary}`),
    '',
    "STORE is the folder of a store, such as ./data/notes, or a URL of varve/http; the environment's VARVE_TOKEN is its token.",
    `KEY is a bare word, or JSON: note, '["note",42]', 42, true, '{"date":"2026-01-31T12:00:00.000Z"}'.`,
    'Every command takes --json, and --help. `varve --version` prints the version.',
  ].join('\n');
}

function report(error: unknown, output: Output): number {
  const exit = exitOf(error);
  const message = messageOf(error);
  if (exit === Exit.ok) return exit;
  if (output.isJson) process.stderr.write(`${JSON.stringify({ error: { code: codeOf(error), message, exit } })}\n`);
  else process.stderr.write(`varve: ${message}\n`);
  return exit;
}
