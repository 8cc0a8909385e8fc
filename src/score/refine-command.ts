/** `pawl judge refine`: better criteria for a judge, from labels. */
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { Command } from 'commander';
import { type CommonOptions, wholeNumber, withConfigOption, withHome } from '../command.ts';
import { agentOf } from '../config.ts';
import { ConfigError, ConflictError, NotFoundError } from '../errors.ts';
import { counted } from '../terminal.ts';
import { defaultCriteria } from './judge.ts';
import { judgeRefine } from './judge-refine-run.ts';
import { fewestLabels } from './refine-judge.ts';

type Options = CommonOptions & {
  readonly agent?: string;
  readonly criteria?: string;
  readonly labels: number;
  readonly variants: number;
  readonly out: string;
};

const number = (value: number | null): string => (value === null ? '–' : value.toFixed(3));

export const refineCommand = withConfigOption(new Command('refine'))
  .description(
    'Let the judge propose better criteria from labels; kept only if they agree more on labels not shown to it.',
  )
  .option('--agent <name>', 'whose labels and judge (default: the first of the settings)')
  .option('--criteria <file>', 'what it begins with (default: those of judge())')
  .option('--labels <n>', 'newest labels to use', wholeNumber(fewestLabels, 200), 20)
  .option('--variants <n>', 'proposals to try', wholeNumber(1, 10), 3)
  .option('--out <file>', 'where kept criteria are written', 'judge-criteria.md')
  .option('--json', 'print as JSON')
  .addHelpText(
    'after',
    '\nExample:\n  pawl judge refine --labels 20 --out judge-criteria.md\n\nUse them: judge({ criteria: readFileSync("judge-criteria.md", "utf8") }); the reward gets a new version.',
  )
  .action((options: Options) =>
    withHome(options, 'existing', async ({ store, config, terminal }) => {
      const agent = agentOf(config, options.agent);
      if (options.criteria !== undefined && !existsSync(options.criteria))
        throw new NotFoundError(`There is no file ${options.criteria}.`);
      const criteria = options.criteria === undefined ? defaultCriteria : readFileSync(options.criteria, 'utf8');
      const found = await judgeRefine(store, agent, { criteria, labels: options.labels, variants: options.variants });
      if (found === 'no judge')
        throw new ConfigError('No judge is configured: set `judge` in the settings (docs/score.md).');
      if (found.labels < fewestLabels)
        throw new ConflictError(
          `${found.labels} labelled conversations of ${agent.name} are recorded; ${fewestLabels} are needed: pawl labels import FILE.`,
        );
      if (found.kept !== null) writeFileSync(options.out, found.kept);
      if (options.json) {
        terminal.write(
          JSON.stringify({ agent: agent.name, ...found, ...(found.kept === null ? {} : { out: options.out }) }),
        );
        return;
      }
      const { before, best, kept, tried, labels } = found;
      terminal.write(`${labels} labels, half to learn from; ${counted(tried.length, 'proposal')} tried.`);
      terminal.write(
        `Agreement before: ${number(before.learned)} on that half, ${number(before.heldOut)} on the other.`,
      );
      terminal.write(
        best === null
          ? 'No proposal agreed more: the criteria stay as they are.'
          : `The best proposal: ${number(best.learned)} on that half, ${number(best.heldOut)} on the other.`,
      );
      if (kept !== null) terminal.write(`Kept, in ${options.out}:\n\n${kept}`);
      else if (best !== null)
        terminal.write('It is not better on labels it was not made from: the criteria stay as they are.');
    }),
  );
