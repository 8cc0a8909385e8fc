/** The scorers that ask a model, against a stand-in that keeps to its protocol (test/judge-server.ts) and a real database. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, beforeEach, describe, expect, it, test } from 'vitest';
import { type JudgeServer, type Shown, startJudge } from '../../test/judge-server.ts';
import { parseConfig } from '../config.ts';
import { makeRelease } from '../deploy/release.ts';
import { entry, noon, sibling, signal } from '../store/fixtures.ts';
import type { Store } from '../store/postgres.ts';
import { writeEntries } from '../store/record.ts';
import { insertRelease } from '../store/releases.ts';
import { listScores } from '../store/scores.ts';
import { withStore } from '../store/test-store.ts';
import { answerRelevance, cosine } from './answer-relevance.ts';
import { openJudge } from './ask-open.ts';
import { averagePrecision, contextPrecision } from './context-precision.ts';
import { contextRecall } from './context-recall.ts';
import { faithfulness } from './faithfulness.ts';
import { converse, trajectory } from './fixtures.ts';
import { judge } from './judge.ts';
import { fromBothOrders, worthOf } from './judge-rank.ts';
import { exchangeOf, passagesOf } from './retrieval.ts';
import { rubric } from './rubric.ts';
import { planScoring, scoreWindow } from './run.ts';
import type { Scorer, ScorerInput } from './scorer.ts';
import { scorerConformance } from './scorer-conformance.ts';
import { contextOf, rewardFrom, weighted } from './weighted.ts';

/** A judge that can read: what contains these words is so, useful, supported, good. */
const good = /sent on Monday/;
const blocksOf = ({ blocks }: Shown, name: string) => blocks.filter((block) => block.name.startsWith(name));
function verdictOn(shown: Shown): object {
  const { task, blocks } = shown;
  const text = (name: string) => blocksOf(shown, name)[0]?.text ?? '';
  if (task.includes('How well did the assistant'))
    return {
      reasoning: 'Read.',
      score: blocks.some((one) => / assistant$/.test(one.name) && good.test(one.text)) ? 1 : 0.2,
    };
  if (task.includes('Take the answer apart'))
    return {
      statements: text('answer')
        .split('. ')
        .filter((one) => !one.endsWith('?')),
    };
  if (task.includes('statements by number'))
    return {
      verdicts: blocksOf(shown, 'statement').map((one, i) => ({
        ...{ number: i + 1, reason: 'Looked.', supported: good.test(one.text) },
      })),
    };
  if (task.includes('sentence by sentence'))
    return {
      sentences: text('reference')
        .split('. ')
        .map((one) => ({ reason: 'Looked.', attributed: good.test(one) })),
    };
  if (task.includes('one passage')) return { reason: 'Looked.', useful: good.test(text('passage')) };
  if (task.includes('3 different questions')) {
    const noncommittal = text('answer').includes('I do not know');
    return { questions: [1, 2, 3].map((n) => ({ question: `${text('answer')} ${n}`, noncommittal })) };
  }
  if (task.includes('is it so') || task.includes('say whether it is so'))
    return {
      statements: [...task.matchAll(/^(\d+)\. (.+)$/gm)].map(([, number, what]) => ({
        number: Number(number),
        reason: 'Looked.',
        so: what!.includes('day') ? blocks.some((one) => good.test(one.text)) : what!.includes('always'),
      })),
    };
  if (task.includes('Which serves')) {
    const [first, second] = [text('first answer').length, text('second answer').length];
    return { reasoning: 'The longer.', better: first === second ? 'first' : first > second ? 'first' : 'second' };
  }
  throw new Error(`Not a task of ours: ${task}`);
}

let server: JudgeServer;
let store: Store;
beforeAll(async () => {
  server = await startJudge(verdictOn);
  server.embedding = (text) => (good.test(text) || text.startsWith('When') ? [1, 0] : [0.6, 0.8]);
  store = await withStore();
});
afterAll(() => server.close());
beforeEach(() => {
  server.bodies.length = 0;
});

const judging = () => {
  const settings = {
    upstreams: { box: { baseUrl: server.url } },
    judge: { upstream: 'box', model: 'judge', embeddingModel: 'e' },
  };
  return openJudge(store, parseConfig(settings, {}, '/').agents[0]!)!;
};
/** As the runtime hands it what it needs. */
const lent = (scorer: Scorer): Scorer => ({
  ...scorer,
  score: (input, { signal }) =>
    scorer.score(
      input,
      contextOf(input, { judge: judging() }, () => signal),
    ),
});
const measure = (scorer: Scorer, input: ScorerInput) =>
  lent(scorer).score(input, { signal: new AbortController().signal });

const passages = (...texts: string[]) => JSON.stringify({ results: texts.map((content) => ({ content })) });
const asked = (answer: string, found: string[] = [], tool = 'search_docs') => ({
  trajectory: trajectory(),
  turns: converse('When was order 7 sent?', [
    ...(found.length === 0 ? [] : [{ say: [[tool, '{"q":"7"}']] as const, results: [passages(...found)] }]),
    { say: answer },
  ]),
  signals: [] as ReturnType<typeof signal>[],
});
const sent = 'Order 7 was sent on Monday';
const silent = { ...asked(''), turns: converse('Hello?', [{ say: '' }]).map((turn) => ({ ...turn, choices: [] })) };

describe('judge', () => {
  scorerConformance({ scorer: lent(judge()), gold: asked(sent), poor: asked('No idea.'), silent, readsAnswers: true });

  it('asks nobody where the user has spoken, unless told to', async () => {
    const spoken = { ...asked(sent), signals: [signal({ value: 0 })] };
    expect(await measure(judge(), spoken)).toMatchObject({ value: null, reason: 'the user has spoken' });
    expect(server.bodies).toHaveLength(0);
    expect(await measure(judge({ alsoWithFeedback: true }), spoken)).toMatchObject({ value: 1 });
  });

  it('gives an answer without a word nothing, and asks nobody', async () => {
    expect(await measure(judge(), asked('  '))).toMatchObject({ value: 0 });
    expect(server.bodies).toHaveLength(0);
  });

  it('has another version with other criteria, and tells the judge those', async () => {
    const strict = judge({ criteria: 'Rhymes: it rhymes.' });
    expect(strict.version).not.toBe(judge().version);
    await measure(strict, asked(sent));
    expect(server.bodies[0]!.messages[1]!.content).toContain('Rhymes: it rhymes.');
  });
});

describe('faithfulness', () => {
  const scorer = faithfulness();
  scorerConformance({
    scorer: lent(scorer),
    gold: asked(sent, [sent]),
    poor: asked(`${sent}. It is blue`, [sent]),
    silent: asked(sent),
    readsAnswers: true,
  });

  it('is the share of the answer’s statements that rest on what was retrieved', async () => {
    const { value, reason } = await measure(
      scorer,
      asked(`${sent}. It is blue. It is heavy. Paid, sent on Monday`, [sent]),
    );
    expect(value).toBe(0.5);
    expect(reason).toContain('2 of 4 statements');
  });

  it('cannot tell of an answer that states nothing, as Ragas', async () => {
    expect(await measure(scorer, asked('Which order do you mean?', [sent]))).toMatchObject({ value: null });
    expect(server.bodies).toHaveLength(1);
  });

  it('is asked once for a question with its passages, whatever else happens to the conversation', async () => {
    const input = asked(`${sent}. By road`, [sent, 'Order 7 is large.']);
    await measure(scorer, input);
    expect(server.bodies).toHaveLength(2);
    await measure(scorer, { ...input, signals: [signal({ value: 1 })] });
    await measure(scorer, { ...input, trajectory: trajectory({ id: 'another' }) });
    expect(server.bodies).toHaveLength(2);
  });
});

describe('context recall', () => {
  const corrected = (correction: string, found: string[]) => ({
    ...asked('No idea.', found),
    signals: [signal({ value: null, correction })],
  });
  scorerConformance({
    scorer: lent(contextRecall()),
    gold: corrected(sent, [sent]),
    poor: corrected(`${sent}. It is blue`, [sent]),
    silent: asked(sent, [sent]),
    readsAnswers: true,
  });

  it('lets the answer stand in for what should have been said only where told to', async () => {
    const input = asked(`${sent}. It is blue. It is heavy. It is late`, [sent]);
    expect(await measure(contextRecall(), input)).toMatchObject({ value: null });
    expect(await measure(contextRecall({ reference: 'answer' }), input)).toMatchObject({ value: 0.25 });
  });
});

describe('a scoring run', () => {
  const windowFrom = (at: number) => ({
    ...{ agent: 'desk', since: new Date(at - 1000), until: new Date(at + 60_000), now: new Date(at + 120_000) },
    services: { judge: judging() },
  });
  const talk = (id: string, startedAt: number) =>
    converse(
      'When was order 7 sent?',
      [{ say: [['search_docs', '{"q":"7"}']], results: [passages(sent, 'Order 7 is large.')] }, { say: 'No idea.' }],
      { trajectory: id, startedAt },
    ).map((turn) => entry.turn({ ...turn }));
  const told = (id: string, fields: NonNullable<Parameters<typeof signal>[0]>) =>
    entry.signal({
      target: { kind: 'trajectory', id },
      value: null,
      identity: JSON.stringify([id, fields.kind, fields.at]),
      ...fields,
    });

  it('shows context recall what users and reviewers wrote as the right answer, the newest of it', async () => {
    const at = noon + 3_600_000;
    await writeEntries(store, [
      ...talk('corrected', at),
      told('corrected', { at: at + 1, correction: 'It is blue. It is heavy', user: 'ann' }),
    ]);
    const spec = weighted({ recall: [1, contextRecall()], precision: [1, contextPrecision()] });
    const window = { ...windowFrom(at), spec };
    expect(await scoreWindow(store, window)).toMatchObject({ scored: 1, unmeasured: 0, broken: 0 });
    const partsNow = async () => (await listScores(store, 'corrected'))[0]!.parts;
    expect((await partsNow()).recall).toMatchObject({ value: 0, reason: expect.stringContaining('0 of 2 sentences') });
    await writeEntries(store, [
      told('corrected', { at: at + 2, kind: 'label', name: 'score', value: 0.1, user: 'rita', correction: sent }),
    ]);
    expect(await scoreWindow(store, window)).toMatchObject({ rescored: 1 });
    expect((await partsNow()).recall).toMatchObject({ value: 1 });
    expect(server.bodies.some(({ messages }) => JSON.stringify(messages).includes('It is blue'))).toBe(true);
  });

  it('shows a label’s correction to nobody who does not read labels', async () => {
    const at = noon + 7_200_000;
    await writeEntries(store, [
      ...talk('labelled', at),
      told('labelled', { at: at + 1, kind: 'label', name: 'score', value: 0.1, user: 'rita', correction: sent }),
    ]);
    const seen: (string | null)[] = [];
    const mine: Scorer = {
      ...{ name: 'mine', version: '1' },
      score: ({ signals }) => {
        seen.push(...signals.map(({ correction }) => correction));
        return { value: 1, reason: '', turns: new Map() };
      },
    };
    await scoreWindow(store, { ...windowFrom(at), spec: weighted({ mine: [1, mine] }) });
    await scoreWindow(store, {
      ...windowFrom(at),
      spec: weighted({ mine: [1, { ...mine, usesLabels: true }], b: [1, judge()] }),
    });
    expect(seen).toEqual([sent]);
  });
});

describe('context precision', () => {
  scorerConformance({
    scorer: lent(contextPrecision()),
    gold: asked(sent, [sent, 'Order 7 is large.']),
    poor: asked(sent, ['Order 7 is large.', sent]),
    silent: asked(sent),
    readsAnswers: true,
  });

  test('is the average precision over the places of what was useful', () => {
    expect(averagePrecision([true, false, true])).toBeCloseTo((1 + 2 / 3) / 2, 12);
    expect(averagePrecision([false, true])).toBe(0.5);
    expect(averagePrecision([false, false])).toBe(0);
  });
});

describe('answer relevance', () => {
  scorerConformance({
    scorer: lent(answerRelevance()),
    gold: asked(sent),
    poor: asked('It is blue.'),
    silent,
    readsAnswers: true,
  });

  it('is the mean cosine of the questions it answers with the one that was asked', async () => {
    expect((await measure(answerRelevance(), asked('Blue it is.'))).value).toBeCloseTo(0.6, 12);
    expect(cosine([3, 4], [4, 3])).toBeCloseTo(24 / 25, 12);
  });

  it('is 0 for an answer that commits to nothing', async () => {
    expect(await measure(answerRelevance(), asked('I do not know.'))).toMatchObject({ value: 0 });
  });

  it('is unmeasured without an embedding model', async () => {
    const settings = { upstreams: { box: { baseUrl: server.url } }, judge: { upstream: 'box', model: 'judge' } };
    const without = openJudge(store, parseConfig(settings, {}, '/').agents[0]!)!;
    const input = asked('Something new.');
    const context = contextOf(input, { judge: without }, () => new AbortController().signal);
    expect(await answerRelevance().score(input, context)).toMatchObject({ value: null });
    expect(await answerRelevance().cost!(input, context)).toEqual({ calls: 0, money: 0 });
  });
});

describe('what was retrieved', () => {
  it('is found in the results of tools whose names read like it, or that are named', () => {
    expect(exchangeOf(asked(sent, ['a', 'b']).turns)?.contexts).toEqual(['a', 'b']);
    expect(exchangeOf(asked(sent, ['a'], 'get_order').turns)?.contexts).toEqual([]);
    expect(exchangeOf(asked(sent, ['a'], 'get_order').turns, { tools: ['get_order'] })?.contexts).toEqual(['a']);
    expect(exchangeOf(asked(sent, ['a']).turns, { tools: ['get_order'] })?.contexts).toEqual([]);
  });

  test.each([
    ['plain words', ['plain words']],
    ['["a", {"text": "b", "score": 1}, {"page_content": "c"}]', ['a', 'b', 'c']],
    ['{"documents": [{"snippet": "a"}, {"id": 7}]}', ['a', '{"id":7}']],
    ['{"answer": 42}', ['{"answer": 42}']],
    ['[]', []],
    ['', []],
  ])('%s', (result, expected) => expect(passagesOf(result)).toEqual(expected));
});

describe('rubric', () => {
  const criteria = [
    { level: 'essential', text: 'Says which day.' },
    { level: 'optional', text: 'Is always so.' },
    { level: 'pitfall', text: 'Shouts.', rule: /!/ },
  ] as const;
  scorerConformance({
    scorer: lent(rubric(criteria)),
    gold: asked(sent),
    poor: asked(`${sent}!`),
    silent,
    readsAnswers: true,
  });

  it('adds what is met, takes pitfalls away, and keeps every verdict with its reason', async () => {
    const input = { ...asked('Wait!'), trajectory: trajectory({ id: 'shouted' }) };
    const { value, reason } = await measure(rubric(criteria), input);
    expect(value).toBe(0); // (0.3 − 0.9) / 1.3
    expect(reason).toBe('1 of 3 criteria kept; not: Says which day. (Looked.); Shouts. (matches /!/)');
    const { rows } = await store.pool.query("select details from pawl.verdicts where trajectory = 'shouted'");
    expect(rows[0].details).toEqual([
      { name: 'essential: Says which day.', value: 0, reason: 'Looked.' },
      { name: 'optional: Is always so.', value: 1, reason: 'Looked.' },
      { name: 'pitfall: Shouts.', value: 0, reason: 'matches /!/' },
    ]);
  });

  it('asks nobody about rules', async () => {
    const rules = rubric([{ level: 'essential', text: 'Names a day.', rule: /monday/i }]);
    expect(await measure(rules, asked(sent))).toMatchObject({ value: 1 });
    expect(server.bodies).toHaveLength(0);
  });

  it('is read from beside the settings, and what is in the file is part of the reward’s version', () => {
    const folder = mkdtempSync(join(tmpdir(), 'pawl-rubric-'));
    try {
      const agent = { name: 'desk', reward: weighted({ tone: [1, rubric('tone.md')] }) };
      const versionWith = (text: string) => {
        writeFileSync(join(folder, 'tone.md'), text);
        return parseConfig({ agents: [agent] }, {}, folder).agents[0]!.reward.version;
      };
      const first = versionWith('# Tone\n## Essential\n- Is kind.\n');
      expect(versionWith('# Another title\n\n## Essential\n\n* Is kind.\n')).toBe(first);
      expect(versionWith('# Tone\n## Important\n- Is kind.\n')).not.toBe(first);
      expect(() => versionWith('# Tone\n')).toThrow('has no criterion');
      expect(() => rewardFrom(weighted({ tone: [1, rubric('none.md')] }), folder)).toThrow('none.md cannot be read');
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
  });
});

describe('answers to the same turn, ranked', () => {
  test('a pair counts only where both orders agree', () => {
    expect(fromBothOrders('first', 'second')).toBe(1);
    expect(fromBothOrders('second', 'first')).toBe(0);
    for (const [a, b] of [
      ['first', 'first'],
      ['second', 'second'],
      ['tie', 'first'],
      ['tie', 'tie'],
    ] as const)
      expect(fromBothOrders(a, b)).toBe(0.5);
  });

  test('an answer is worth the mean over its opponents', () => {
    expect(
      worthOf([
        [0.5, 1, 0.5],
        [0, 0.5, 1],
        [0.5, 0, 0.5],
      ]),
    ).toEqual([0.75, 0.5, 0.25]);
  });

  it('are compared by a scoring run, each pair in both orders, once', async () => {
    const [turn] = converse('Where is it?', [{ say: 'Sent.' }], { trajectory: 'explored' });
    const said = (content: string) =>
      sibling(turn!, { choices: [{ index: 0, message: { role: 'assistant', content }, finishReason: 'stop' }] });
    const [same, longer] = [said('Sent!'), said('It was sent on Monday.')];
    const siblings = [same, longer].map((one) => ({ kind: 'sibling', sibling: one }) as const);
    await writeEntries(store, [entry.turn({ ...turn! }), ...siblings]);
    const window = {
      ...{ agent: 'desk', spec: weighted({ judge: [1, judge({ siblings: 'rank' })] }) },
      ...{ since: new Date(noon - 60_000), until: new Date(noon + 60_000), now: new Date(noon + 120_000) },
    };
    const first = judging();
    const planned = () => planScoring(store, { ...window, services: { judge: judging() } });
    expect(await planned()).toEqual({ trajectories: 1, pending: 1, answers: 3, calls: 7, money: 0, unpriced: 7 });
    expect(server.bodies).toHaveLength(0);
    expect(await scoreWindow(store, { ...window, services: { judge: first } })).toMatchObject({
      scored: 1,
      answers: 3,
    });
    expect(first.counts()).toMatchObject({ calls: 1 + 3 * 2, asked: 2 });
    expect(await planned()).toMatchObject({ pending: 0, answers: 0, calls: 0, unpriced: 0 });
    const partOf = async (id: string) => (await listScores(store, `answer/${id}`))[0]!.parts.judge;
    // The judge takes the first of two that are equally long: its place decides, so it is a tie.
    expect(await partOf(turn!.id)).toMatchObject({ value: 0.25, reason: 'better than 0, level with 1 of 2 others' });
    expect(await partOf(same.id)).toMatchObject({ value: 0.25 });
    expect(await partOf(longer.id)).toMatchObject({ value: 1, reason: 'better than 2, level with 0 of 2 others' });
    const other = { ...window, spec: weighted({ judge: [0.5, judge({ siblings: 'rank' })] }) };
    const second = judging();
    await scoreWindow(store, { ...other, services: { judge: second } });
    expect(second.counts()).toMatchObject({ calls: 0, known: 2 });
  });

  it('are not compared by a judge outside where one of them is of an internal model', async () => {
    await insertRelease(
      store.db,
      makeRelease({ agent: 'desk', name: 'heron-1', upstream: 'own', model: 'heron', internal: true }, 0),
    );
    const [turn] = converse('Who is on it?', [{ say: 'A team.' }], { trajectory: 'beside', startedAt: noon + 600_000 });
    const message = { role: 'assistant', content: 'Team Heron.' };
    const inner = sibling(turn!, { release: 'heron-1', choices: [{ index: 0, message, finishReason: 'stop' }] });
    await writeEntries(store, [entry.turn({ ...turn! }), { kind: 'sibling', sibling: inner } as const]);
    const outside = judging();
    const window = {
      ...{ agent: 'desk', spec: weighted({ judge: [1, judge({ siblings: 'rank' })] }) },
      ...{ since: new Date(noon + 540_000), until: new Date(noon + 660_000), now: new Date(noon + 720_000) },
    };
    expect(await scoreWindow(store, { ...window, services: { judge: outside } })).toMatchObject({ answers: 2 });
    expect(outside.counts()).toMatchObject({ calls: 1, withheld: 1 });
    for (const { id } of [turn!, inner])
      expect((await listScores(store, `answer/${id}`))[0]!.parts.judge).toMatchObject({
        value: null,
        reason: expect.stringMatching(/^the model of heron-1 is internal/),
      });
  });
});
