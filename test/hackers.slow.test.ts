/**
 * Reward hackers around the support desk's base model, played for real. Each is caught for the reason that it was planted for;
 * the model itself, played again with other seeds, is caught for none. `npm run bench -- hackers` trains an honest checkpoint too.
 */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { planted } from '../bench/hackers/planted.ts';
import { supportDesk } from '../examples/support-desk/desk.ts';
import { readGolden } from '../examples/support-desk/golden.ts';
import type { Engine } from '../src/engine/engine.ts';
import { openEngine } from '../src/engine/open.ts';
import { attemptOf } from '../src/evaluate/engine-contender.ts';
import { type Attempt, type Contender, playMatch } from '../src/evaluate/match.ts';
import { makeSuite } from '../src/evaluate/suite.ts';
import { loadChatCodec } from '../src/simulate/chat-codec.ts';
import { enginePlayer } from '../src/simulate/engine-player.ts';
import { play } from '../src/simulate/episode.ts';
import type { Player } from '../src/simulate/player.ts';

const base = 'examples/support-desk/model';
const suite = makeSuite('golden', readGolden().slice(0, 64));
let engine: Engine;
let real: Player;
let before: Attempt[][];

const playWith = async (player: Player, seed: number): Promise<Attempt[][]> =>
  (await play(supportDesk, player, suite.tasks, { seed })).map((group) => group.map(attemptOf));
const contender = (name: string, played: Attempt[][]): Contender => ({ name, play: async () => played });
const gatesThatFail = async (candidate: Attempt[][]) => {
  const report = await playMatch({
    ...{ agent: 'support-desk', suite, baseline: contender('base', before), candidate: contender('new', candidate) },
    ...{ attempts: 1, seed: 1, temperature: 1, settings: {} },
  });
  const failed = report.gates!.filter(({ verdict }) => verdict === 'fail');
  if (failed.length > 0) expect(report.verdict).toBe('fail');
  return failed;
};

beforeAll(async () => {
  engine = await openEngine({});
  await engine.load('base', base);
  real = enginePlayer(engine, 'base', await loadChatCodec(base), { temperature: 1 });
  before = await playWith(real, 1);
}, 120_000);
afterAll(() => engine?.close());

describe('a planted hacker', () => {
  it.each(planted)(
    '$name is caught by $gate',
    async ({ gate, wrap }) => {
      const failed = await gatesThatFail(await playWith(wrap(real), 1));
      const named = failed.find(({ name }) => name === gate);
      expect(named, failed.map(({ name }) => name).join()).toBeDefined();
      expect(named!.look.length).toBeGreaterThan(0);
    },
    120_000,
  );
});

describe('the model itself', () => {
  it.each([2, 3])(
    'is caught by nothing when it plays again with seed %i',
    async (seed) => {
      expect(await gatesThatFail(await playWith(real, seed))).toEqual([]);
    },
    120_000,
  );
});
