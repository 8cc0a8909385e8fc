/**
 * `pawl evaluate`: a candidate against what serves, on the agent's golden file. It goes through the gateway of the Pawl that
 * serves this home; where none does, one is started in this process for as long as it takes. In this folder, and not beside
 * the stage, because it builds what it needs of all the others.
 */
import { setMaxListeners } from 'node:events';
import { Command } from 'commander';
import { openArtifacts } from './artifacts/open.ts';
import { byOption, userName, wholeNumber, withConfigOption } from './command.ts';
import { agentOf, loadConfig } from './config.ts';
import { openEngine } from './engine/open.ts';
import { ConfigError, ConflictError, NotFoundError } from './errors.ts';
import { findAsked } from './evaluate/ask.ts';
import { checkCompatibility, neededOf, serverOf } from './evaluate/check-compatibility.ts';
import { reportLines, verdictColour } from './evaluate/command.ts';
import { type Compatibility, needsInWords } from './evaluate/compatibility.ts';
import { withDoor } from './evaluate/door.ts';
import type { Report } from './evaluate/report.ts';
import { evaluateReleases } from './evaluate/run.ts';
import { readRelease, servingRelease } from './store/releases.ts';
import { openTerminal, table } from './terminal.ts';
import { progressBar } from './train/view.ts';
import { withServing } from './with-serving.ts';

type Options = {
  readonly config?: string;
  readonly agent?: string;
  readonly candidate?: string;
  readonly baseline?: string;
  readonly suite?: string;
  readonly attempts?: number;
  readonly seed?: number;
  readonly by?: string;
  readonly requirePass?: boolean;
  readonly json?: boolean;
};

export const evaluateCommand = (): Command =>
  withConfigOption(new Command('evaluate'))
    .description('Judge a release by playing a suite with it and with another, case by case, and keep the report.')
    .option('--agent <name>', 'the agent (default: the first of the settings)')
    .option('--candidate <release>', 'name of the release to be judged; needed')
    .option('--baseline <release>', 'name of the release to compare with (default: what serves)')
    .option('--suite <file>', 'JSONL file of cases, or the reference of one (default: `evaluate.golden` of the agent)')
    .option('--attempts <n>', 'attempts at each case (default: `evaluate.attempts` of the agent)', wholeNumber(1, 64))
    .option('--seed <n>', 'another seed plays anew what was answered before', wholeNumber(0, 2_147_483_647))
    .option(...byOption())
    .option('--require-pass', 'exit with 1 unless the verdict is pass: for scripts that go on only then')
    .option('--json', 'print the report as JSON')
    .addHelpText(
      'after',
      [
        '\nExamples:',
        '  pawl evaluate --agent support-desk --candidate v2',
        '  pawl evaluate --candidate v2 --baseline v1 --suite hard-cases.jsonl --attempts 4 --require-pass',
        '\nThe exit code is 0 when there is a report, whatever it says; with --require-pass only for a pass.',
      ].join('\n'),
    )
    .action(run)
    .addCommand(compat);

type CompatOptions = Pick<Options, 'config' | 'agent' | 'by' | 'requirePass' | 'json'>;

const compat = withConfigOption(new Command('compat'))
  .description(
    'Check whether a release fits where it is to serve: template, context, tools, structured output, latency, memory.',
  )
  .argument('<release>', 'name of the release')
  .option('--agent <name>', 'the agent (default: the first of the settings)')
  .option('--require-pass', 'exit with 1 unless it fits')
  .option('--json', 'as one JSON object')
  .addHelpText(
    'after',
    '\nWhat is checked is `evaluate.compatibility` of the agent; what that leaves open, by what its traffic of the last week used.\nWhatever begins to serve is checked so, unless it passed within a day.\n\nExample:\n  pawl evaluate compat v2',
  )
  .action(async (release: string, _: unknown, command: Command) => {
    // `pawl evaluate` has options of the same names, and is told them first.
    const options = command.optsWithGlobals<CompatOptions>();
    const config = await loadConfig(options);
    const of = agentOf(config, options.agent);
    const agent = of.name;
    const { signal } = new AbortController();
    const found = await withServing(config, signal, async ({ store, url }) => {
      const asked = await readRelease(store, { agent, name: release });
      if (asked === null)
        throw new NotFoundError(
          `Agent ${agent} has no release ${release}; \`pawl releases list\` shows those that exist.`,
        );
      const { upstreams } = config;
      const needs = await neededOf(store, upstreams, of, asked, Date.now());
      if (needs === null)
        throw new ConflictError(
          `The traffic of agent ${agent} has no chat completions, which alone are checked; set evaluate.compatibility to say what to check.`,
        );
      console.error(`Checking ${needsInWords(needs)} …`);
      const serving = (await servingRelease(store, agent))?.name;
      const about = {
        agent,
        release,
        needs,
        server: serverOf(upstreams, asked),
        serving,
        by: options.by ?? userName(),
      };
      return withDoor(store, { agent, url }, (door) => checkCompatibility(store, { ...about, door }));
    });
    const terminal = openTerminal();
    if (options.json) terminal.write(JSON.stringify(found, null, 2));
    else for (const line of compatibilityLines(found, terminal)) terminal.write(line);
    if (options.requirePass && found.verdict !== 'pass') process.exitCode = 1;
  });

function compatibilityLines(
  { release, verdict, checks }: Compatibility,
  terminal: ReturnType<typeof openTerminal>,
): string[] {
  const columns = [{ title: 'CHECK' }, { title: 'VERDICT' }, { title: 'WHY', shrinkTo: 20 }];
  const rows = checks.map((check) => [check.name, check.verdict, check.reason]);
  return [
    ...table(columns, rows, terminal, (cell, row, column) =>
      column === 1 ? verdictColour(checks[row]!.verdict, terminal.paint)(cell) : cell,
    ),
    `${release}: ${verdictColour(verdict, terminal.paint)(verdict)}`,
  ];
}

async function run(given: Options): Promise<void> {
  const { candidate } = given;
  if (candidate === undefined) throw new ConfigError('Say which release is to be judged: --candidate NAME.');
  const options = { ...given, candidate };
  const config = await loadConfig(options);
  const agent = agentOf(config, options.agent);
  const stop = new AbortController();
  setMaxListeners(0, stop.signal); // every answer under way listens
  const interrupted = () => {
    if (stop.signal.aborted) process.exit(130);
    console.error('Stopping. Ctrl-C again stops at once.');
    stop.abort();
  };
  process.on('SIGINT', interrupted).on('SIGTERM', interrupted);
  const began = Date.now();
  const progress = showProgress();
  let report: Report;
  try {
    report = await withServing(config, stop.signal, async ({ store, url }) =>
      evaluateReleases({
        ...(await findAsked(store, openArtifacts(config), agent, options)),
        upstreams: config.upstreams,
        play: {
          withDoor: (use) => withDoor(store, { agent: agent.name, url, signal: stop.signal }, use),
          withEngine: async (use) => {
            const engine = await openEngine(config.engine);
            try {
              return await use(engine);
            } finally {
              await engine.close();
            }
          },
        },
        signal: stop.signal,
        onProgress: progress.show,
      }),
    );
  } catch (error) {
    progress.clear();
    if (!stop.signal.aborted) throw error;
    console.error('Stopped before the end: there is no report.');
    process.exit(130);
  } finally {
    process.removeListener('SIGINT', interrupted).removeListener('SIGTERM', interrupted);
  }
  progress.clear();
  const terminal = openTerminal();
  if (options.json) terminal.write(JSON.stringify(report, null, 2));
  else for (const line of reportLines(report, terminal)) terminal.write(line);
  if (report.createdAt < began)
    console.error(
      `This was asked before, at ${new Date(report.createdAt).toISOString()}, and answered then; --seed ${report.seed + 1} plays it anew.`,
    );
  if (options.requirePass && report.verdict !== 'pass') process.exitCode = 1;
}

const firstMs = 2_000;
const everyMs = 10_000;

/** On standard error: a line that changes at a terminal, else one every few seconds. */
function showProgress(): { show(played: number, total: number): void; clear(): void } {
  const { isTTY } = process.stderr;
  let next = Date.now() + firstMs;
  let isShown = false;
  return {
    show(played, total) {
      if (!isTTY && Date.now() < next) return;
      next = Date.now() + everyMs;
      isShown = true;
      const text = `${played} of ${total} attempts`;
      process.stderr.write(isTTY ? `\r\x1b[K  ${progressBar(played / total, 20)}  ${text}` : `${text}\n`);
    },
    clear() {
      if (isTTY && isShown) process.stderr.write('\r\x1b[K');
    },
  };
}
