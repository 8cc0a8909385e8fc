/** The command line. Each command lives beside the stage it drives; this file only lists them. */
import { Command } from 'commander';

const program = new Command('pawl')
  .description('Turns production traffic of an LLM agent into a better model, and lets it serve only if it is better.')
  .showHelpAfterError();

await program.parseAsync();
