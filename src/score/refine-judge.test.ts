import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type JudgeServer, startJudge } from '../../test/judge-server.ts';
import { importConversations } from '../collect/import.ts';
import { parseConfig } from '../config.ts';
import { withStore } from '../store/test-store.ts';
import { judgeRefine } from './judge-refine-run.ts';
import { type RefineParts, refineJudge } from './refine-judge.ts';

/** Items are what people think; a judge under `right` knows, under `half` errs by a quarter, under anything else says 0.5. */
const parts = (propose: RefineParts<number>['propose']): RefineParts<number> => ({
  labelled: Array.from({ length: 12 }, (_, i) => ({ item: i % 2, label: i % 2 })),
  criteria: 'start',
  variants: 2,
  judge: async (criteria, item) => ({
    value: criteria === 'right' ? item : criteria === 'half' ? Math.abs(item - 0.25) : 0.5,
    reason: '',
  }),
  propose,
});

describe('criteria', () => {
  test('are kept when they agree more, also where nobody looked', async () => {
    const found = await refineJudge(parts(async (k) => (k === 0 ? 'half' : 'right')));
    expect(found).toMatchObject({ labels: 12, kept: 'right', before: { learned: 0.5, heldOut: 0.5 } });
    expect(found.best).toMatchObject({ learned: 1, heldOut: 1 });
    expect(found.tried.map(({ learned }) => learned)).toEqual([0.75, 1]);
  });

  test('that fit only the labels they were made from are not', async () => {
    const seen = new Set<number>();
    const labelled = Array.from({ length: 12 }, (_, i) => ({ item: i, label: i % 2 }));
    const found = await refineJudge<number>({
      ...{ labelled, criteria: 'start', variants: 1 },
      judge: async (criteria, item) => {
        if (criteria === 'start') return { value: 0.5, reason: '' };
        // knows by heart the first half it is asked about, and is wrong about all others
        if (seen.size < 6) seen.add(item);
        return { value: seen.has(item) ? item % 2 : 1 - (item % 2), reason: '' };
      },
      propose: async () => 'by heart',
    });
    expect(found.best).toMatchObject({ learned: 1, heldOut: 0 });
    expect(found.kept).toBeNull();
  });

  test('that are no better, empty, or the same again change nothing', async () => {
    for (const proposal of ['start', '', 'other'])
      expect(await refineJudge(parts(async () => proposal))).toMatchObject({ kept: null, best: null });
  });
});

describe('with a judge that speaks the wire format', () => {
  let server: JudgeServer;
  beforeAll(async () => {
    server = await startJudge();
  });
  afterAll(() => server.close());

  test('the judge proposes, is tried, and is asked nothing twice', async () => {
    const store = await withStore();
    const config = parseConfig(
      {
        agents: [{ name: 'desk' }],
        upstreams: { box: { baseUrl: server.url } },
        judge: { upstream: 'box', model: 'judge', timeoutSeconds: 5 },
      },
      {},
      '/',
    );
    const lines = Array.from({ length: 12 }, (_, k) =>
      JSON.stringify({
        ...{ id: `c-${k}`, label: k % 2 },
        messages: [
          { role: 'user', content: `number ${k}?` },
          { role: 'assistant', content: k % 2 === 1 ? 'gladly' : 'go away' },
        ],
      }),
    );
    await importConversations(store, {
      agent: 'desk',
      origin: 'production',
      secret: 's'.repeat(32),
      now: new Date(),
      lines,
    });
    server.verdict = (body: unknown) => {
      const text = JSON.stringify(body);
      if (text.includes('Write better criteria')) return { criteria: ['Is it kind?'] };
      if (!text.includes('Is it kind?')) return { reasoning: 'Fine.', score: 0.5 };
      return { reasoning: 'By kindness.', score: text.includes('gladly') ? 1 : 0 };
    };
    const run = () =>
      judgeRefine(store, config.agents[0]!, { criteria: 'Is it long?', labels: 20, variants: 1 }, { pauseMs: 1 });
    expect(await run()).toMatchObject({ labels: 12, kept: 'Is it kind?', best: { heldOut: 1 } });
    const asked = server.bodies.length;
    expect(await run()).toMatchObject({ kept: 'Is it kind?' });
    expect(server.bodies.length).toBe(asked);
  });
});
