/** The command line: finds the command that is called, runs it, and says in a sentence what went wrong. */
import { Command } from 'commander';
import { listedCommands } from './commands.ts';
import { version } from './version.ts';

// `pawl … | head` closes the pipe early: whoever reads has seen enough, and the command still ends in its own order, with
// its database stopped and its lock given back. A full disk is said once.
for (const stream of [process.stdout, process.stderr])
  stream.on('error', ({ code, message }: NodeJS.ErrnoException) => {
    if (code === 'EPIPE' || process.exitCode === 1) return;
    process.exitCode = 1;
    if (stream === process.stdout) console.error(`Standard output cannot be written: ${message}.`);
  });

const program = new Command('pawl')
  .description('Turns production traffic of an LLM agent into a better model, and lets it serve only if it is better.')
  .version(version)
  .showHelpAfterError();
for (const command of await listedCommands(process.argv.slice(2))) {
  if (command.commands.length > 0) command.showHelpAfterError(`\`pawl ${command.name()} --help\` lists what there is.`);
  program.addCommand(command);
}

// What people try first, and is no command: the demo is an agent among others, in a clone of the repository.
program.addCommand(
  new Command('demo')
    .argument('[what...]')
    .allowUnknownOption()
    .action((_, __, command: Command) =>
      command.error(
        'error: there is no command demo: the demo is an agent like yours, in examples/support-desk of Pawl’s repository. There, `npm start` turns its loop once, and `npm start -- --break` shows a candidate that learned a trick being stopped by evaluation and, forced past it, taken back by the canary.',
      ),
    ),
  { hidden: true },
);

try {
  await program.parseAsync();
} catch (error) {
  const { explain } = await import('./command.ts');
  // What went wrong in a sentence; where in the code it happened only for those who ask.
  console.error(explain(error, process.env.PAWL_DEBUG === '1'));
  process.exit(1);
}
