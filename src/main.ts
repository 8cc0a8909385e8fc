/** The command line. Each command lives beside the stage it drives; this file only lists them. */
import { Command } from 'commander';
import { trajectoriesCommand } from './collect/command.ts';
import { consentCommand } from './collect/consent-command.ts';
import { explain } from './command.ts';
import { curateCommand, datasetsCommand } from './curate/command.ts';
import { deployCommands } from './deploy/command.ts';
import { doctorCommand } from './doctor.ts';
import { engineCommands } from './engine/command.ts';
import { reportsCommand } from './evaluate/command.ts';
import { keysCommand } from './gateway/command.ts';
import { scoreCommand } from './score/command.ts';
import { serveCommand } from './serve-command.ts';
import { startCommands } from './start-command.ts';
import { trainCommands } from './train/command.ts';
import { version } from './version.ts';

const program = new Command('pawl')
  .description('Turns production traffic of an LLM agent into a better model, and lets it serve only if it is better.')
  .version(version)
  .showHelpAfterError()
  .addCommand(serveCommand())
  .addCommand(trajectoriesCommand())
  .addCommand(keysCommand())
  .addCommand(consentCommand())
  .addCommand(scoreCommand())
  .addCommand(curateCommand())
  .addCommand(datasetsCommand())
  .addCommand(reportsCommand())
  .addCommand(doctorCommand());
for (const command of [...startCommands(), ...deployCommands(), ...engineCommands(), ...trainCommands()])
  program.addCommand(command);

try {
  await program.parseAsync();
} catch (error) {
  // What went wrong in a sentence; where in the code it happened only for those who ask.
  console.error(explain(error, process.env.PAWL_DEBUG === '1'));
  process.exit(1);
}
