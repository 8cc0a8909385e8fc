/** Writers of one agent take turns, and so does whoever removes what they write: an advisory lock per agent. */
import { createHash } from 'node:crypto';

/** A number nobody else is likely to use: 'pawr' in ASCII. */
export const writerLock = 0x70617772;

/** In the order in which they must be taken, so that nobody can deadlock. */
export const writerLocksOf = (agents: Iterable<string>): number[] =>
  [...new Set(agents)]
    .map((agent) => createHash('sha256').update(String(agent)).digest().readInt32BE())
    .sort((a, b) => a - b);
