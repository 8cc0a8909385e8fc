/** The command line. Each command lives beside the stage it drives; this file only lists them. */
import { Command } from 'commander';
import { BoundaryError } from './errors.ts';
import { serveCommand } from './serve-command.ts';
import { version } from './version.ts';

const program = new Command('pawl')
  .description('Turns production traffic of an LLM agent into a better model, and lets it serve only if it is better.')
  .version(version)
  .showHelpAfterError()
  .addCommand(serveCommand());

try {
  await program.parseAsync();
} catch (error) {
  // What went wrong in a sentence; where in the code it happened only for those who ask.
  const debug = process.env.PAWL_DEBUG === '1' || !(error instanceof Error);
  console.error(debug ? error : (error as Error).message);
  if (!debug && !(error instanceof BoundaryError)) console.error('(PAWL_DEBUG=1 shows where this happened.)');
  process.exit(1);
}
