// The program of the test of one turn: writes a store in files without yielding until it is killed, or reads what such a turn left.

import { bytes } from 'varve';
import { files } from 'varve/fs';
import { open } from 'varve/synchronous';
import { readTurn, type TurnPlan, writeInOneTurn } from '../../support/turn.ts';
import { parameters, say } from '../support/program.ts';

const { directory, does, ...plan } = parameters<TurnPlan & { does: 'write' | 'read' }>();

const began = performance.now();
const { memoryBytes } = plan;
const db = await open<number, Uint8Array>('turn', { storage: files(directory), values: bytes, memoryBytes });
const openMs = performance.now() - began;
if (does === 'write') writeInOneTurn(db, plan, (so) => say(`report ${JSON.stringify(so)}`));
say(JSON.stringify({ openMs, ...readTurn(db, plan) }));
await db.close();
