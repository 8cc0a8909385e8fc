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
  overview: [
    'An agent’s loop at a glance, and what needs a person now.',
    async () => (await import('./api/overview-command.ts')).overviewCommand(),
  ],
  loop: [
    'Turns of the loop: run, status, history, pause, resume.',
    async () => (await import('./loop-command.ts')).loopCommand(),
  ],
  serve: [
    'Serve gateway and API, and turn the loops.',
    async () => (await import('./serve-command.ts')).serveCommand(),
  ],
  gateway: [
    'Only the gateway of it: answer agents and record.',
    async () => (await import('./serve-command.ts')).gatewayCommand(),
  ],
  worker: [
    'Only the workers of it: turn the loops, move rollouts.',
    async () => (await import('./serve-command.ts')).workerCommand(),
  ],
  api: ['Only the API of it.', async () => (await import('./serve-command.ts')).apiCommand()],
  keys: ['Client keys: create, list, revoke.', async () => (await import('./gateway/command.ts')).keysCommand()],
  access: [
    'Who may look and change things: create, list, revoke.',
    async () => (await import('./api/access-command.ts')).accessCommand(),
  ],
  trajectories: ['What was recorded.', async () => (await import('./collect/command.ts')).trajectoriesCommand()],
  consent: [
    'Which users agreed that a model may learn from them.',
    async () => (await import('./privacy/consent-command.ts')).consentCommand(),
  ],
  explore: [
    'Further answers asked for beside those users got.',
    async () => (await import('./gateway/explore-command.ts')).exploreCommand(),
  ],
  score: ['How good conversations were.', async () => (await import('./score/command.ts')).scoreCommand()],
  judge: [
    'Who is asked by scorers that ask a model: status, show, test, refine.',
    async () => (await import('./score/judge-command.ts')).judgeCommand(),
  ],
  reward: [
    'Whether the reward can be trusted: status, fit, compare, train.',
    async () => (await import('./score/reward-command.ts')).rewardCommand(),
  ],
  labels: [
    'What people say conversations were worth: import, list, export.',
    async () => (await import('./collect/labels-command.ts')).labelsCommand(),
  ],
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
  review: [
    'What waits for a person: list, next, show, label, pick.',
    async () => (await import('./review/command.ts')).reviewCommand(),
  ],
  releases: [
    'What can answer traffic.',
    async () =>
      (await import('./deploy/releases-command.ts')).releasesCommand((await import('./with-serving.ts')).reach),
  ],
  rollouts: [
    'Releases on their way to the users.',
    async () =>
      (await import('./deploy/rollouts-command.ts')).rolloutsCommand((await import('./with-serving.ts')).reach),
  ],
  erase: [
    'Remove everything of a user, and keep it from coming back.',
    async () => (await import('./privacy/erase-command.ts')).eraseCommand(),
  ],
  pii: [
    'Personal data in what is stored, or in a file: scan, report.',
    async () => (await import('./privacy/pii-command.ts')).piiCommand(),
  ],
  retention: [
    'How long conversations and datasets are kept: run, status.',
    async () => (await import('./privacy/retention-command.ts')).retentionCommand(),
  ],
  kill: [
    'Kill switch: one release for everybody, at once.',
    async () => (await import('./deploy/kill-command.ts')).killCommand(),
  ],
  flags: [
    'Switches for what happens by itself: list, on, off.',
    async () => (await import('./deploy/flags-command.ts')).flagsCommand(),
  ],
  audit: ['Who did what.', async () => (await import('./deploy/audit-command.ts')).auditCommand()],
  artifacts: [
    'Datasets, models, checkpoints and suites as files.',
    async () => (await import('./artifacts/command.ts')).artifactsCommand(),
  ],
  engine: ['Serve models from this machine.', async () => (await import('./engine/command.ts')).engineCommand()],
  model: [
    'Look at, convert and make model checkpoints.',
    async () => (await import('./engine/command.ts')).modelCommand(),
  ],
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
