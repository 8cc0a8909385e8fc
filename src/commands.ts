/**
 * The list of commands, in the order of the loop: what `pawl --help` says of each and where it is. A command lives beside
 * the stage it drives and is loaded when it is called, so that a start costs what it uses: the list needs no database
 * driver, `pawl serve` no trainer. What a command's own help says is in its own file.
 */
import { Command } from 'commander';

type Listed = readonly [summary: string, load: () => Promise<Command>];

export const commands: Readonly<Record<string, Listed>> = {
  init: [
    'Write the settings and the agent of a new installation.',
    async () => (await import('./init-command.ts')).initCommand(),
  ],
  start: ['Start everything and turn the loop once.', async () => (await import('./start-command.ts')).startCommand()],
  loop: [
    'Turns of the loop: run, status, history, pause, resume.',
    async () => (await import('./loop-command.ts')).loopCommand(),
  ],
  serve: ['Serve gateway and API.', async () => (await import('./serve-command.ts')).serveCommand()],
  keys: ['Client keys: create, list, revoke.', async () => (await import('./gateway/command.ts')).keysCommand()],
  trajectories: ['What was recorded.', async () => (await import('./collect/command.ts')).trajectoriesCommand()],
  consent: [
    'Which users agreed that a model may learn from them.',
    async () => (await import('./collect/consent-command.ts')).consentCommand(),
  ],
  explore: [
    'Further answers asked for beside those users got.',
    async () => (await import('./gateway/explore-command.ts')).exploreCommand(),
  ],
  score: ['How good conversations were.', async () => (await import('./score/command.ts')).scoreCommand()],
  curate: ['Choose what to learn from.', async () => (await import('./curate/command.ts')).curateCommand()],
  datasets: ['What was chosen to learn from.', async () => (await import('./curate/command.ts')).datasetsCommand()],
  train: [
    'Train a model: learn from what was curated, or practise in an environment.',
    async () => (await import('./train/command.ts')).trainCommand(),
  ],
  runs: [
    'Training runs: look, pause, stop, resume.',
    async () => (await import('./train/runs-command.ts')).runsCommand(),
  ],
  evaluate: [
    'Judge a release by playing a suite with it and with another.',
    async () => (await import('./evaluate-command.ts')).evaluateCommand(),
  ],
  reports: ['Evaluations and their verdicts.', async () => (await import('./evaluate/command.ts')).reportsCommand()],
  releases: ['What can answer traffic.', async () => (await import('./deploy/releases-command.ts')).releasesCommand()],
  rollouts: [
    'Releases on their way to the users.',
    async () => (await import('./deploy/rollouts-command.ts')).rolloutsCommand(),
  ],
  audit: ['Who did what.', async () => (await import('./deploy/audit-command.ts')).auditCommand()],
  engine: ['Serve models from this machine.', async () => (await import('./engine/command.ts')).engineCommand()],
  model: [
    'Look at, convert and make model checkpoints.',
    async () => (await import('./engine/command.ts')).modelCommand(),
  ],
  demo: ['The demo that comes with Pawl.', async () => (await import('./start-command.ts')).demoCommand()],
  doctor: [
    'Check everything Pawl needs and say what to do.',
    async () => (await import('./doctor.ts')).doctorCommand(),
  ],
};

/** All commands in the order of the list; those named among `args` as they are, of the others only what the list says. */
export const listedCommands = (args: readonly string[]): Promise<Command[]> =>
  Promise.all(
    Object.entries(commands).map(async ([name, [summary, load]]) =>
      (args.includes(name) ? await load() : new Command(name)).summary(summary),
    ),
  );
