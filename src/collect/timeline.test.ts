import { describe, expect, test } from 'vitest';
import { paint, width } from '../terminal.ts';
import type { Signal } from './signal.ts';
import { timelineOf } from './timeline.ts';
import { duration, timelineLines } from './timeline-print.ts';
import type { Trajectory } from './trajectory.ts';
import type { Turn } from './turn.ts';

type Said = Record<string, unknown>;

const turn = (n: number, messages: unknown, answer: Said | null, more: Partial<Turn> = {}): Turn => ({
  id: `0190a000-0000-7000-8000-00000000000${n}`,
  trajectory: 't1',
  agent: 'desk',
  user: 'u1',
  origin: 'production',
  keys: [],
  endpoint: 'chat',
  startedAt: Date.UTC(2026, 0, 31, 14, 0, 0) + (n - 1) * 1500,
  firstTokenMs: 120,
  latencyMs: 820,
  upstream: 'local',
  release: 'base',
  model: 'qwen3-8b',
  status: 'ok',
  httpStatus: 200,
  error: null,
  attempts: 1,
  stream: true,
  request: { model: 'qwen3-8b', messages },
  choices: answer === null ? [] : [{ index: 0, message: { role: 'assistant', ...answer }, finishReason: 'stop' }],
  promptTokens: 512,
  completionTokens: 61,
  reasoningTokens: null,
  usage: null,
  threadKey: null,
  redactions: {},
  ...more,
});

const system = { role: 'system', content: 'You are a desk.' };
const ask = { role: 'user', content: 'Where is order 1234?' };
const call = { id: 'c1', type: 'function', function: { name: 'lookup_order', arguments: '{"id":1234}' } };
const result = { role: 'tool', tool_call_id: 'c1', content: '{"status":"shipped"}' };

const trajectory: Trajectory = {
  id: 't1',
  agent: 'desk',
  user: 'u1',
  origin: 'production',
  consent: 'given',
  startedAt: new Date(Date.UTC(2026, 0, 31, 14)),
  endedAt: new Date(Date.UTC(2026, 0, 31, 14)),
  turns: 2,
  errors: 0,
  promptTokens: 1024,
  completionTokens: 122,
  latencyMs: 1640,
  release: 'base',
};

const textsOf = (turns: Turn[]) => timelineOf(turns).steps.map(({ news }) => news.map(({ text }) => text));
const print = (turns: Turn[], signals: Signal[] = [], full = false, columns = 80) =>
  timelineLines(trajectory, timelineOf(turns, signals), { columns, paint: paint(false), full }).join('\n');

describe('what is new in a turn', () => {
  test('the history and the answer that came back as history are not shown again', () => {
    const turns = [
      turn(1, [system, ask], { content: null, tool_calls: [call], reasoning_content: 'look it up' }),
      // A client sends the answer back without its reasoning and with '' for null.
      turn(2, [system, ask, { role: 'assistant', content: '', tool_calls: [call] }, result], { content: 'Shipped.' }),
    ];
    expect(textsOf(turns)).toEqual([['You are a desk.', 'Where is order 1234?'], ['{"status":"shipped"}']]);
    expect(timelineOf(turns).steps[1]?.news[0]?.toolName).toBe('lookup_order');
  });

  test('the same words said twice are two messages', () => {
    const yes = { role: 'user', content: 'yes' };
    const turns = [
      turn(1, [yes], { content: 'Sure?' }),
      turn(2, [yes, { role: 'assistant', content: 'Sure?' }, yes], { content: 'Done.' }),
    ];
    expect(textsOf(turns)).toEqual([['yes'], ['yes']]);
  });

  test('a changed system prompt shows itself alone, and what left the history is counted', () => {
    const turns = [
      turn(1, [system, ask], { content: 'Here.' }),
      turn(2, [{ role: 'system', content: 'Be brief.' }, ask], { content: 'Here.' }),
    ];
    expect(textsOf(turns)[1]).toEqual(['Be brief.']);
    expect(timelineOf(turns).steps[1]?.dropped).toBe(1);
  });

  test('calls of two sub-agents that interleave each show their own news', () => {
    const other = { role: 'user', content: 'Translate this.' };
    const turns = [
      turn(1, [ask], { content: 'A' }),
      turn(2, [other], { content: 'B' }),
      turn(3, [ask, { role: 'assistant', content: 'A' }, { role: 'user', content: 'Thanks' }], { content: 'C' }),
    ];
    expect(textsOf(turns)).toEqual([['Where is order 1234?'], ['Translate this.'], ['Thanks']]);
  });

  test('bodies of any shape are read without failing', () => {
    for (const messages of [null, 7, {}, [null, 1, 'x', [], { role: 3, content: [{ type: 'image_url' }, 'y', null] }]])
      expect(() => print([turn(1, messages, { content: { a: 1 }, tool_calls: ['?', {}] })])).not.toThrow();
  });

  test('a prompt and an embedding input are what was asked', () => {
    const completion = turn(1, undefined, null, { endpoint: 'completions', request: { prompt: ['a', 'b'] } });
    const embedding = turn(2, undefined, null, { endpoint: 'embeddings', request: { input: [1, 2] } });
    expect(textsOf([completion, embedding])).toEqual([['a', 'b'], ['[1,2]']]);
  });
});

describe('the printed timeline', () => {
  const vote: Signal = {
    id: 's',
    identity: 's',
    agent: 'desk',
    target: { kind: 'turn', id: turn(2, [], null).id },
    kind: 'feedback',
    name: 'vote',
    key: null,
    value: 0,
    unit: null,
    user: 'u1',
    comment: 'It did not arrive.',
    correction: null,
    at: 1,
    receivedAt: 1,
  };

  test('names offset, release, latency, first token, tokens and finish reason of each turn', () => {
    const turns = [turn(1, [ask], { content: 'A' }), turn(2, [ask], { content: 'B' })];
    expect(print(turns, [], false, 100)).toContain(
      'turn 2  +1.5 s  base  qwen3-8b  820 ms, first token 120 ms  512 → 61 tokens  stop',
    );
    expect(print(turns)).toMatch(/turn 2 .*\n {3}stop\n/);
  });

  test('what it cost stands beside its tokens where somebody knows it', () => {
    const timeline = timelineOf([turn(1, [ask], { content: 'A' })], []);
    const said = (money: number | null) =>
      timelineLines(
        trajectory,
        timeline,
        { columns: 200, paint: paint(false), full: false },
        {
          ...{ tooLarge: [], signalsCut: false, money },
        },
      )[1];
    expect(said(0.064)).toMatch(/ tokens · cost 0\.0640 · /);
    expect(said(null)).not.toContain('cost');
  });

  test('shows tool calls with arguments, results by tool name, reasoning, and signals of the turn', () => {
    const text = print(
      [
        turn(1, [ask], { content: null, tool_calls: [call], reasoning_content: 'look it up' }),
        turn(2, [ask, { role: 'assistant', content: null, tool_calls: [call] }, result], { content: 'Shipped.' }),
      ],
      [vote],
    );
    expect(text).toMatch(/thinking +look it up/);
    expect(text).toMatch(/call +lookup_order\(id: 1234\)/);
    expect(text).toMatch(/result +lookup_order → \{"status":"shipped"\}/);
    expect(text).toMatch(/signal +feedback vote = 0 \(down\) +by u1/);
    expect(text).toContain('It did not arrive.');
  });

  test('an error is said with its HTTP status', () => {
    const failed = turn(1, [ask], null, { status: 'error', httpStatus: 502, error: 'upstream hung up' });
    expect(print([failed])).toMatch(/error +upstream hung up \(HTTP 502\)/);
  });

  test('long texts are shortened and say by how much, unless full', () => {
    const long = turn(1, [{ role: 'user', content: 'x'.repeat(5000) }], { content: 'ok' });
    expect(print([long])).toMatch(/… 4,\d{3} more characters/);
    expect(print([long], [], true).replace(/[^x]/g, '')).toHaveLength(5000);
  });

  test('no recorded text reaches the terminal as an escape sequence, from any field', () => {
    const evil = '\u001b]52;c;ZXZpbA==\u0007\u009b2J';
    const text = print(
      [
        turn(
          1,
          [
            { role: evil, content: evil },
            { role: 'tool', tool_call_id: evil, content: evil },
          ],
          { content: evil, reasoning: evil, tool_calls: [{ id: evil, function: { name: evil, arguments: evil } }] },
          { release: evil, model: evil, error: evil, status: 'error' },
        ),
      ],
      [
        {
          ...vote,
          name: evil,
          user: evil,
          comment: evil,
          correction: evil,
          unit: evil,
          target: { kind: 'key', id: evil },
        },
      ],
      true,
    );
    // biome-ignore lint/suspicious/noControlCharactersInRegex: that there are none is the claim
    expect(text).not.toMatch(/[\u0000-\u0009\u000b-\u001f\u007f-\u009f]/);
    expect(text).toContain('␛]52');
  });

  test('no line is wider than the terminal, with wide characters too', () => {
    const text = print(
      [turn(1, [{ role: 'user', content: '주문번호 '.repeat(60) }], { content: '네'.repeat(100) })],
      [],
      true,
      60,
    );
    expect(Math.max(...text.split('\n').map(width))).toBeLessThanOrEqual(60);
  });
});

test('durations are said in at most two parts', () => {
  expect([0, 820, 2400, 59_960, 185_000, 7_800_000, 273_600_000].map(duration)).toEqual([
    '0 ms',
    '820 ms',
    '2.4 s',
    '1 min',
    '3 min 5 s',
    '2 h 10 min',
    '3 d 4 h',
  ]);
});
