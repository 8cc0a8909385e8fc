/** `pawl reward train` and `models`: a reward model from labels, and those there are. */
import { Command, InvalidArgumentError, Option } from 'commander';
import { byOption, type CommonOptions, wholeNumber, withConfigOption, withHome } from '../command.ts';
import { agentOf } from '../config.ts';
import { openEngine } from '../engine/open.ts';
import { ConfigError } from '../errors.ts';
import { listRewardModels, type RewardModelRecord } from '../store/reward-models.ts';
import { sayProgress, type Terminal, table } from '../terminal.ts';
import { fewestExamples, gate } from './train-reward-model.ts';
import { trainFromLabels } from './train-run.ts';

type TrainOptions = CommonOptions & {
  readonly agent?: string;
  readonly base?: string;
  readonly method: 'regression' | 'pairs';
  readonly epochs: number;
  readonly learningRate: number;
  readonly least: number;
  readonly by: string;
};

const rate = (text: string): number => {
  const value = Number(text);
  if (value > 0 && value <= 1) return value;
  throw new InvalidArgumentError('Give a number above 0 and at most 1, such as 0.0003.');
};
const shown = (value: number | null): string => (value === null ? '–' : value.toFixed(3));

function lines({ name, version, report, refused }: RewardModelRecord, { paint }: Terminal): string[] {
  const { auc, low, high, judged, trained, calibrationError, errorBefore, losses } = report;
  return [
    `Reward model ${name}, version ${version}: loss ${losses.map(shown).join(' → ')} on ${trained} ${report.method === 'pairs' ? 'pairs' : 'labels'}.`,
    `On ${judged} labels it has not seen: AUC ${shown(auc)} (${shown(low)} to ${shown(high)}), calibration error ${shown(calibrationError)} (${shown(errorBefore)} before).`,
    refused === null
      ? `${paint.green('It may be used')}: rewardModel('${name}', '${version}') in the agent’s reward.`
      : `${paint.red('Refused')}: ${refused}`,
  ];
}

export const trainRewardCommand = (): Command =>
  withConfigOption(new Command('train'))
    .description(
      `Train a reward model from labels; it may be used only if its AUC on unseen labels reaches ${gate.auc}.`,
    )
    .argument('<name>', 'what it is called')
    .option('--agent <name>', 'whose labels (default: the first of the settings)')
    .option('--base <model>', 'what it begins from: a checkpoint’s folder, or an artifact (default: train.base)')
    .addOption(
      new Option('--method <method>', 'labels as they are, or pairs of one task')
        .choices(['regression', 'pairs'])
        .default('regression'),
    )
    .option('--epochs <n>', 'times each label is seen', wholeNumber(1, 100), 3)
    .option('--learning-rate <rate>', 'of AdamW', rate, 3e-4)
    .option('--least <n>', 'labels or pairs there must be', wholeNumber(20, 1_000_000), fewestExamples)
    .option(...byOption())
    .option('--json', 'print as JSON')
    .addHelpText('after', '\nExample:\n  pawl reward train helpful --base models/qwen3-0.6b')
    .action((name: string, options: TrainOptions) =>
      withHome(options, 'existing', async ({ store, artifacts, config, terminal }) => {
        if (!/^[a-z0-9][a-z0-9_.-]{0,62}$/.test(name))
          throw new ConfigError(`'${name}' cannot name a reward model: lower-case letters, digits and _ . - only.`);
        if (config.engine.kind !== 'embedded')
          throw new ConfigError('A reward model is trained by the embedded engine; the settings name another.');
        const agent = agentOf(config, options.agent);
        const given = options.base ?? agent.train.base;
        if (given === undefined) throw new ConfigError('What does it begin from? Give --base, or set train.base.');
        const engine = await openEngine(config.engine);
        try {
          const progress = sayProgress();
          const { method, epochs, learningRate, least, by } = options;
          const model = await trainFromLabels(
            { store, artifacts, engine },
            {
              ...{ agent: agent.name, name, method, epochs, learningRate, least, by, now: new Date() },
              base: await artifacts.folder(given),
              onProgress: (epoch, share, loss) =>
                progress(
                  () => `Epoch ${epoch + 1} of ${epochs}, ${Math.round(share * 100)}%, loss ${loss.toFixed(3)} …`,
                ),
            },
          );
          if (model.refused !== null) process.exitCode = 1;
          if (options.json) terminal.write(JSON.stringify(model));
          else for (const line of lines(model, terminal)) terminal.write(line);
        } finally {
          await engine.close();
        }
      }),
    );

export const rewardModelsCommand = (): Command =>
  withConfigOption(new Command('models'))
    .description('List reward models, newest first, with what was found of each.')
    .option('--agent <name>', 'whose (default: the first of the settings)')
    .option('--json', 'one JSON object per line')
    .addHelpText('after', '\nExample:\n  pawl reward models')
    .action((options: CommonOptions & { readonly agent?: string }) =>
      withHome(options, 'existing', async ({ store, config, terminal }) => {
        const models = await listRewardModels(store, agentOf(config, options.agent).name);
        if (options.json) {
          for (const model of models) terminal.write(JSON.stringify(model));
          return;
        }
        if (models.length === 0) {
          terminal.write('There is no reward model yet. `pawl reward train NAME` makes one from labels.');
          return;
        }
        const columns = [
          ...[{ title: 'NAME' }, { title: 'VERSION' }, { title: 'AUC', right: true }, { title: '95%' }],
          ...[
            { title: 'OFF BY', right: true },
            { title: 'GATE', shrinkTo: 10 },
          ],
        ];
        const rows = models.map(({ name, version, report, refused }) => [
          ...[name, version, shown(report.auc), `${shown(report.low)} to ${shown(report.high)}`],
          ...[shown(report.calibrationError), refused ?? 'passed'],
        ]);
        for (const line of table(columns, rows, terminal)) terminal.write(line);
      }),
    );
