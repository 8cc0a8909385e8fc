import { describe, expect, test } from 'vitest';
import { noon, signal, turn } from '../store/fixtures.ts';
import { feedback } from './feedback.ts';
import { converse, orderTool, trajectory } from './fixtures.ts';
import { label } from './label.ts';
import { outcome } from './outcome.ts';
import { rewardModel } from './reward-model-scorer.ts';
import type { ScorerInput } from './scorer.ts';
import { scorerConformance } from './scorer-conformance.ts';
import { toolUse } from './tool-use.ts';

const turns = converse('Where is order 7?', [
  { say: [['get_order', '{"id":7}']], results: ['{"status":"sent"}'] },
  { say: 'It was sent.' },
]);
const resolved = (fields: Parameters<typeof signal>[0]) =>
  signal({ kind: 'outcome', name: 'resolved', identity: `outcome ${JSON.stringify(fields)}`, user: null, ...fields });
const vote = (user: string | null, value: number, id?: string) =>
  signal({ user, value, identity: `${user} ${value} ${id}`, ...(id && { target: { kind: 'turn', id } }) });
const input = (signals: ReturnType<typeof signal>[] = [], of = turns) => ({
  trajectory: trajectory(),
  turns: of,
  signals,
});

describe('outcome', () => {
  scorerConformance({
    scorer: outcome('resolved'),
    gold: input([resolved({ value: 1 }), resolved({ value: 1, target: { kind: 'turn', id: turns[1]!.id } })]),
    poor: input([resolved({ value: 0 })]),
    silent: input([vote('ann', 1)]),
  });

  test('takes the newest value, whenever it arrived', () => {
    const signals = [resolved({ value: 1, at: noon + 2 }), resolved({ value: 0, at: noon + 1, receivedAt: noon + 9 })];
    expect(outcome('resolved').score(input(signals)).value).toBe(1);
  });

  test('maps a measured value onto 0–1 by its worst and best', () => {
    const hours = outcome('resolved', { worst: 48, best: 0 });
    expect(hours.score(input([resolved({ value: 12 })])).value).toBe(0.75);
    expect(hours.score(input([resolved({ value: 100 })])).value).toBe(0);
    expect(outcome('resolved').score(input([resolved({ value: 12 })])).value).toBeNull();
    expect(() => outcome('x', { worst: 1, best: 1 })).toThrow(/from 1 to 1/);
  });
});

describe('feedback', () => {
  scorerConformance({
    scorer: feedback(),
    gold: input([vote('ann', 1), vote('bob', 1, turns[0]!.id)]),
    poor: input([vote('ann', 1), vote('bob', 0.5), vote(null, 0)]),
    silent: input([resolved({ value: 1 }), signal({ value: null, comment: 'hm' })]),
  });

  test('counts each user once', () => {
    // ann: (1 + 1 + 1) / 3 = 1, bob: 0; together one half
    const signals = [vote('ann', 1), vote('ann', 1, turns[0]!.id), vote('ann', 1, turns[1]!.id), vote('bob', 0)];
    expect(feedback().score(input(signals)).value).toBe(0.5);
    expect([...feedback().score(input(signals)).turns.values()]).toEqual([1, 1]);
  });

  test('a thousand users whom one key invented weigh as much as one who was there', () => {
    const mine = turns.map((one) => ({ ...one, user: 'ann' }));
    const invented = Array.from({ length: 1000 }, (_, i) => ({ ...vote(`invented ${i}`, 0), key: 'k1' }));
    expect(feedback().score(input([...invented, vote('ann', 1)], mine)).value).toBe(0.5);
    const reviewer = { ...vote('reviewer', 1), key: 'k2' };
    expect(feedback().score(input([...invented, vote('ann', 1), reviewer], mine)).value).toBeCloseTo(2 / 3, 10);
  });

  test('of several who took part each has a voice', () => {
    const both = turns.map((one, i) => ({ ...one, user: i === 0 ? 'ann' : 'bob' }));
    expect(feedback().score(input([vote('ann', 1), vote('bob', 1), vote('eve', 0)], both)).value).toBeCloseTo(
      2 / 3,
      10,
    );
  });
});

describe('tool use', () => {
  const poor = converse('Where are my orders?', [
    { say: [['get_order', '{"id":7}']], results: ['{"status":"sent"}'] },
    { say: [['get_order', '{ "id": 7 }']], results: ['{"status":"sent"}'] }, // the same again: 0
    { say: [['get_order', '{"id":"7"}']], results: ['{"error":"bad arguments: id"}'] }, // does not fit: 0
    {
      say: [
        ['cancel', '{}'], // was not offered: 0
        ['get_order', '{"id":8'], // not JSON: 0
      ],
      results: ['{"error":"unknown tool"}', '{"error":"arguments are not JSON"}'],
    },
    { say: [['get_order', '{"id":9}']], results: ['{"error":"no such order"}'] }, // answered by an error: 0.5
    { say: 'I do not know.' },
  ]);
  scorerConformance({
    scorer: toolUse(),
    gold: input([], turns),
    poor: input([], poor),
    silent: input([], [turn()]),
    readsAnswers: true,
  });

  test('is the mean over calls, per turn and in all', () => {
    const { value, turns: per, reason } = toolUse().score(input([], poor));
    expect(poor.map(({ id }) => per.get(id))).toEqual([1, 0, 0, 0, 0.5, undefined]);
    expect(value).toBe(1.5 / 6);
    expect(reason).toBe(
      '6 tool calls: 1 repeated for nothing, 1 with arguments that do not fit, 1 of an unknown tool, 1 with arguments that are no JSON object, 1 answered by an error',
    );
  });

  test('does not call it a repeat when the world has changed in between', () => {
    const again = converse('Cancel 7', [
      { say: [['get_order', '{"id":7}']], results: ['{"status":"open"}'] },
      { say: [['get_order', '{"id":7}']], results: ['{"status":"cancelled"}'] },
      { say: 'Done.' },
    ]);
    expect(toolUse().score(input([], again)).value).toBe(1);
  });

  test('reads a result in parts as the words it says', () => {
    const [asked, answered] = converse('Where is order 9?', [
      { say: [['get_order', '{"id":9}']], results: ['{"error":"no such order"}'] },
      { say: 'I do not know.' },
    ]) as [(typeof turns)[0], (typeof turns)[0]];
    const messages = (answered.request.messages as Record<string, unknown>[]).map((one) =>
      one.role === 'tool' ? { ...one, content: [{ type: 'text', text: one.content }] } : one,
    );
    const inParts = { ...answered, request: { ...answered.request, messages } };
    expect(toolUse().score(input([], [asked, answered])).value).toBe(0.5);
    expect(toolUse().score(input([], [asked, inParts])).value).toBe(0.5);
  });

  test('counts calls nobody could read', () => {
    const message = { role: 'assistant', content: '<tool_call>{', malformed_tool_calls: 1 };
    const broken = turn({ choices: [{ index: 0, message, finishReason: 'stop' }] });
    expect(toolUse().score(input([], [broken])).value).toBe(0);
  });

  test('a custom tool takes any text', () => {
    const call = { id: 'c', type: 'custom', custom: { name: 'apply_patch', input: '*** Begin Patch' } };
    const message = { role: 'assistant', content: null, tool_calls: [call] };
    const one = turn({ choices: [{ index: 0, message, finishReason: 'tool_calls' }] });
    const tools = [{ type: 'custom', custom: { name: 'apply_patch' } }];
    const calling = (offered: unknown[]) => [{ ...one, request: { ...one.request, tools: offered } }];
    expect(toolUse().score(input([], calling(tools))).value).toBe(1);
    expect(toolUse().score(input([], calling([orderTool]))).value).toBe(0);
  });
});

describe('label', () => {
  const said = (value: number, reviewer: string, name = 'score') =>
    signal({ kind: 'label', name, value, user: reviewer, identity: `${reviewer} ${name}` });
  scorerConformance({
    ...{
      scorer: label(),
      gold: input([said(1, 'rita'), said(0, 'sam', 'part.tools')]),
      silent: input([vote('ann', 1)]),
    },
    poor: input([said(1, 'rita'), said(0.5, 'sam')]),
  });
});

describe('a trained reward model', () => {
  const { score, ...rest } = rewardModel('helpful', 'a'.repeat(16));
  const isSent = ({ choices }: (typeof turns)[0]) => choices.some(({ message }) => message.content === 'It was sent.');
  // What the runtime lends; a real one is in train-run.test.ts.
  const rewardModels = {
    value: async ({ turns: seen }: Pick<ScorerInput, 'turns'>) => (seen.some(isSent) ? 1 : 0),
  };
  scorerConformance({
    scorer: { ...rest, score: (seen, context) => score(seen, { ...context, rewardModels }) },
    gold: input(),
    poor: input([], converse('Where?', [{ say: 'No idea.' }])),
    silent: input([], [turn({ choices: [] })]),
    readsAnswers: true,
  });
});

describe('a scorer that asks', () => {
  const resolvedIn = outcome('resolved');
  scorerConformance({
    scorer: { name: 'judge', version: '1', score: async (seen) => resolvedIn.score(seen) },
    gold: input([resolved({ value: 1 })]),
    poor: input([resolved({ value: 0 })]),
    silent: input([vote('ann', 1)]),
  });
});
