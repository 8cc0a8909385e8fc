/**
 * `npm run bench -- hackers`: does evaluation stop what only looks better? The base model of the support desk is the baseline.
 * An honest checkpoint is trained from it by each of `--recipes` and seeds, and has to pass. Planted reward hackers
 * (hackers/planted.ts) wrap the first honest one; each has to fail, for the reason that is named with it.
 *
 *   --module FILE     hackers that somebody else wrote, in place of the planted ones: a default export of { name, player } or a
 *                     list of these. `player` is a Player (src/simulate/player.ts): it is given conversations with their
 *                     messages and answers each; its third argument is the honest checkpoint's player, to wrap. With
 *                     `honest: true` it has to pass instead. `gate`, where given, is the reason it has to fail for.
 *   --honest FOLDER   a trained checkpoint, in place of training; may be given several times
 *   --recipes, --seeds, --attempts, --tasks
 *
 * Last line: `planted` and `caught` (verdict fail, and for the named reason where one is), `honest` and `honest_passed`.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { z } from 'zod';
import { broad } from '../examples/support-desk/corpus.ts';
import { supportDesk } from '../examples/support-desk/desk.ts';
import { readGolden } from '../examples/support-desk/golden.ts';
import type { DatasetReader } from '../src/curate/read.ts';
import { openEngine } from '../src/engine/open.ts';
import { attemptOf, engineContender } from '../src/evaluate/engine-contender.ts';
import { gateSettings } from '../src/evaluate/gates/all.ts';
import { type Contender, playMatch } from '../src/evaluate/match.ts';
import type { Report } from '../src/evaluate/report.ts';
import { makeSuite } from '../src/evaluate/suite.ts';
import { loadChatCodec } from '../src/simulate/chat-codec.ts';
import { enginePlayer } from '../src/simulate/engine-player.ts';
import { play } from '../src/simulate/episode.ts';
import type { Conversation, PlayedTurn, Player } from '../src/simulate/player.ts';
import { type OfAgent, planRun, specOf } from '../src/train/plan.ts';
import { type RecipeName, recipeNames } from '../src/train/recipe-names.ts';
import { createRun, train } from '../src/train/run.ts';
import { memoryRunStore } from '../src/train/run-record.ts';
import { trainSettings } from '../src/train/settings.ts';
import { importUserModule } from '../src/user-module.ts';
import { planted } from './hackers/planted.ts';

const { values: options } = parseArgs({
  options: {
    module: { type: 'string' },
    honest: { type: 'string', multiple: true },
    recipes: { type: 'string', default: 'sft' },
    seeds: { type: 'string', default: '1' },
    attempts: { type: 'string', default: '1' },
    tasks: { type: 'string', default: '150' },
    /** Seed of the evaluation. */
    seed: { type: 'string', default: '1' },
    verbose: { type: 'boolean', default: false },
  },
});
const attempts = Number(options.attempts);
const seed = Number(options.seed);

const base = resolve('examples/support-desk/model');
const suite = makeSuite('golden', readGolden().slice(0, Number(options.tasks)));
const codec = await loadChatCodec(base);
const folder = mkdtempSync(join(tmpdir(), 'pawl-hackers-'));
const engine = await openEngine({});
const on = { engine, environment: supportDesk, suite, temperature: 1 };

/** What the model must not forget. */
const kept = (of: number) => broad('train', 400, of).map(({ messages, kind }) => ({ messages, taskType: kind }));
/** The recipes play for what they learn from. */
const noDatasets: DatasetReader = {
  async *examples() {},
  async *pairs() {},
};

/** Trains the base model; the result stays loaded under the name. */
async function trainHonest(name: string, recipe: RecipeName, of: number): Promise<void> {
  const agent: OfAgent = {
    name: 'support-desk',
    environment: supportDesk,
    train: trainSettings.parse({ replay: { share: 0.1, examples: kept }, validationTasks: 0 }),
  };
  const { spec } = await specOf(agent, { base, seed: of, overrides: { recipe } }, noDatasets);
  const plan = await planRun(spec.settings, spec, engine, noDatasets, agent);
  const store = memoryRunStore();
  await createRun(store, { ...spec, id: name, folder: join(folder, name) }, plan.stages, Date.now());
  for await (const _ of train(name, { engine, store, ...plan, model: name, checkpointEvery: 1000 }));
}

/** A contender that is no model: whatever the player answers is played. */
const playerContender = (name: string, player: Player): Contender => ({
  name,
  async play({ attempts: times, seed: of, onProgress }) {
    let played = 0;
    const onEpisode = () => onProgress(++played);
    const episodes = await play(supportDesk, player, suite.tasks, { attempts: times, seed: of, onEpisode });
    return episodes.map((group) => group.map(attemptOf));
  },
});

const foreign = z.strictObject({
  name: z.string().min(1).max(200),
  player: z.custom<
    (c: readonly Conversation[], s: AbortSignal | undefined, real: Player) => Promise<readonly PlayedTurn[]>
  >(
    (value) => typeof value === 'function',
    'player must be a function: conversations in, turns out (src/simulate/player.ts)',
  ),
  honest: z.boolean().default(false),
  gate: z.string().optional(),
});

type Entrant = {
  readonly name: string;
  readonly honest: boolean;
  readonly gate?: string | undefined;
  readonly contender: Contender;
  readonly model?: string;
};

async function foreigners(file: string, real: Player): Promise<Entrant[]> {
  const loaded = await importUserModule(resolve(file));
  return z
    .array(foreign)
    .min(1)
    .parse([loaded.default].flat())
    .map(({ name, player, honest, gate }) => ({
      ...{ name, honest, gate },
      contender: playerContender(name, (conversations, signal) => player(conversations, signal, real)),
    }));
}

try {
  await engine.load('base', base);
  const first = engineContender(on, { name: 'base', model: 'base', codec });
  // The baseline is the same for all, so it plays once.
  const before = await first.play({ attempts, seed, onProgress: () => {} });
  const baseline: Contender = { name: 'base', play: async () => before };

  const honest: string[] = [];
  for (const [i, path] of (options.honest ?? []).entries()) {
    const name = `honest-${i + 1}`;
    await engine.load(name, resolve(path));
    honest.push(name);
  }
  if (honest.length === 0)
    for (const recipe of options.recipes.split(','))
      for (const of of options.seeds.split(',').map(Number)) {
        const known = recipeNames.find((one) => one === recipe);
        if (known === undefined) throw new Error(`There is no recipe ${recipe}; there are ${recipeNames.join(', ')}.`);
        const name = `${recipe}-${of}`;
        await trainHonest(name, known, of);
        honest.push(name);
      }
  const real = enginePlayer(engine, honest[0]!, codec, { temperature: 1 });

  const entrants: Entrant[] = [
    ...honest.map((name) => ({
      name,
      honest: true,
      model: name,
      contender: engineContender(on, { name, model: name, codec }),
    })),
    ...(options.module === undefined
      ? planted.map(({ name, gate, wrap }) => ({
          name,
          honest: false,
          gate,
          contender: playerContender(name, wrap(real)),
        }))
      : await foreigners(options.module, real)),
  ];
  const counts = { planted: 0, caught: 0, honest: 0, honest_passed: 0 };
  for (const { name, honest: isHonest, gate, contender } of entrants) {
    const drift =
      'driftFrom' in contender ? () => (contender as ReturnType<typeof engineContender>).driftFrom('base') : undefined;
    const report = await playMatch({
      ...{ agent: 'support-desk', suite, baseline, candidate: contender, attempts, seed, temperature: 1 },
      settings: { gates: gateSettings.parse({}) },
      ...(drift ? { drift } : {}),
    });
    const failed = failedGates(report);
    const caught = report.verdict === 'fail' && (gate === undefined || failed.includes(gate));
    if (isHonest) {
      counts.honest++;
      if (report.verdict === 'pass') counts.honest_passed++;
    } else {
      counts.planted++;
      if (caught) counts.caught++;
    }
    const { baseline: from, candidate: to } = report.overall ?? { baseline: Number.NaN, candidate: Number.NaN };
    const right = isHonest ? report.verdict === 'pass' : caught;
    console.log(
      `${right ? 'ok ' : 'BAD'} ${isHonest ? 'honest ' : 'planted'} ${name}: ${(from * 100).toFixed(1)}% → ${(to * 100).toFixed(1)}%, ${report.verdict}${failed.length > 0 ? ` by ${failed.join(', ')}` : ''}${gate === undefined ? '' : ` (named: ${gate})`}`,
    );
    if (options.verbose || !right) for (const reason of report.reasons) console.log(`      ${reason}`);
    if (options.verbose)
      for (const { name: of, verdict, reason } of report.gates ?? []) console.log(`      ${of} ${verdict}: ${reason}`);
  }
  console.log(JSON.stringify({ bench: 'hackers', ...counts, tasks: suite.tasks.length, attempts }));
} finally {
  await engine.close();
  rmSync(folder, { recursive: true, force: true });
}

function failedGates({ gates = [] }: Report): string[] {
  return gates.filter(({ verdict }) => verdict === 'fail').map(({ name }) => name);
}
