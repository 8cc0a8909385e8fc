/** The log of a serving process: JSON lines on standard error. It may lose lines, and says how many; it never waits. */
import { type Logger, pino } from 'pino';
import { openOutput } from './output.ts';

type Log = { readonly log: Logger; readonly linesLost: () => number };

export function openLog(level: string): Log {
  const output = openOutput(2);
  const log = pino({ level }, output);
  // Node prints its warnings by itself, and waits for them to be read.
  process.removeAllListeners('warning');
  process.on('warning', (warning) => log.warn({ err: warning }, warning.message));
  return { log, linesLost: () => output.lost };
}
