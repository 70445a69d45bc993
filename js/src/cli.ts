#!/usr/bin/env node
/** The command `varve`: stores in files, and stores behind `varve/http`, from a terminal. docs/guide/command-line.md describes it. */

import { run } from './cli/program.ts';

process.exitCode = await run(process.argv.slice(2));
