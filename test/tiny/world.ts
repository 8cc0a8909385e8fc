/**
 * The smallest world the loop can turn on, for tests that stop it everywhere: a customer says a word, and the right answer
 * begins with an a. Customers come straight into the database, as if a gateway had recorded them; the model is random and
 * learns within seconds.
 */
import { z } from 'zod';
import { agentSchema } from '../../src/agent.ts';
import { deskReward } from '../../src/score/fixtures.ts';
import { type Environment, makeTasks } from '../../src/simulate/environment.ts';
import { giveConsent } from '../../src/store/consents.ts';
import { entry } from '../../src/store/fixtures.ts';
import type { Store } from '../../src/store/postgres.ts';
import { writeEntries } from '../../src/store/record.ts';
import { readRelease, servingRelease } from '../../src/store/releases.ts';
import { listRollouts } from '../../src/store/rollouts.ts';

export const agent = 'tiny';
type Data = { word: string };

const environment: Environment<Data, null> = {
  name: 'tiny',
  system: '',
  types: { say: (random) => ({ word: `w${random.integer(0, 999)}` }) },
  data: z.strictObject({ word: z.string() }),
  database: () => null,
  tools: [],
  user: ({ data }) => ({ open: () => data.word, answer: () => null }),
  gradeTurn: () => ({ reward: 0, parts: {}, reasons: [] }),
  gradeEnd: ({ messages }) => {
    const said = messages.findLast(({ role }) => role === 'assistant')?.content ?? '';
    const success = said.startsWith('a');
    const share = [...said].filter((letter) => letter === 'a').length / Math.max(3, said.length);
    return { success, reward: (success ? 0.5 : 0) + share / 2, parts: {}, reasons: [] };
  },
  limits: { turns: 1, callsPerTurn: 1, mistakes: 1, tokensPerTurn: 3, tokens: 64, seconds: 60, characters: 100 },
};

export const definition = agentSchema.parse({
  name: agent,
  reward: deskReward,
  environment,
  // In the home of each test. A random model that learns one word in seconds drifts as far as there is to go.
  evaluate: { golden: 'golden.jsonl', gates: { drift: null, entropy: null, diversity: null } },
  // There is no gateway to ask the candidate through.
  deploy: {
    ...{ steps: [0.5, 1], holdSeconds: 0, minTurns: 4, minUnits: 2, outcome: null },
    ...{ shadow: { share: 0 }, compatibility: 'off' },
  },
  loop: { every: null, after: null },
  train: {
    ...{
      tasks: 64,
      steps: 6,
      tasksPerStep: 4,
      attempts: 4,
      learningRate: 0.08,
      without: ['points', 'types', 'balance'],
    },
    replay: {
      share: 0.1,
      examples: (seed: number) =>
        makeTasks(environment, 'validation', 8, seed).map(({ data }) => ({
          messages: [
            { role: 'user', content: `${data.word}?` },
            { role: 'assistant', content: 'a b' },
          ],
          taskType: 'broad',
        })),
    },
  },
});

export const golden = () => makeTasks(environment, 'golden', 40, 1);

type Visits = {
  readonly prefix: string;
  readonly seed: number;
  readonly count: number;
  readonly signal?: AbortSignal;
  readonly onVisit?: (done: number) => void;
};

/** Customers whose conversations are written down at once. Those of an open rollout meet both releases. */
export async function sendCustomers(store: Store, { prefix, seed, count, signal, onVisit }: Visits) {
  for (const [i, { data }] of makeTasks(environment, 'validation', count, seed).entries()) {
    signal?.throwIfAborted();
    const [rollout] = await listRollouts(store, { agent, open: true });
    const candidate = rollout && i % 2 === 0 ? await readRelease(store, { id: rollout.candidate }) : null;
    const release = (candidate ?? (await servingRelease(store, agent))!).name;
    const [user, trajectory, at] = [`user-${i}`, `${prefix}-${i}`, Date.now()];
    await giveConsent(store, agent, user, new Date(at - 1));
    // Some have left a mask, which training fills.
    const content = i % 5 === 0 ? `${data.word} [email]` : data.word;
    const request = { model: agent, messages: [{ role: 'user', content }] };
    const choices = [{ index: 0, message: { role: 'assistant', content: 'aaa' }, finishReason: 'stop' }];
    await writeEntries(store, [
      entry.turn({ agent, user, trajectory, startedAt: at, release, request, choices }),
      entry.signal({
        ...{ agent, user: null, kind: 'outcome', name: 'resolved', value: 1, at },
        ...{ identity: `resolved ${trajectory}`, target: { kind: 'trajectory', id: trajectory } },
      }),
    ]);
    onVisit?.(i + 1);
  }
}
