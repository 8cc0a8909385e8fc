import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import { type Environment, makeTask, makeTasks, parseTask, type Task, tool, weigh } from './environment.ts';
import { type Episode, play } from './episode.ts';
import type { AssistantMessage } from './message.ts';
import type { Conversation, PlayedTurn, Player } from './player.ts';

/** A whole environment: the user names a number, the agent must add it to the counter and say the sum. */
type Counter = { total: number };
const counting: Environment<{ add: number }, Counter> = {
  name: 'counting',
  system: 'Count.',
  types: { add: (r) => ({ add: r.integer(1, 9) }), big: (r) => ({ add: r.integer(10, 99) }) },
  data: z.strictObject({ add: z.number() }),
  database: () => ({ total: 100 }),
  tools: [
    tool('add', 'Adds.', { n: z.number().int() }, ({ n }, database: Counter) => {
      if (n === 13) throw new Error('thirteen');
      database.total += n;
      return { total: database.total };
    }),
    tool('sleep', 'Never ends.', {}, () => new Promise(() => {})),
  ],
  user: ({ data }) => ({
    open: () => `Add ${data.add}.`,
    answer: (spoken) => (spoken.at(-1)!.text.includes('?') ? `I said ${data.add}.` : null),
  }),
  gradeTurn: ({ steps, broken }) =>
    weigh({ clean: [1, Number(broken === null && steps.every((s) => s.mistake === null))] }),
  gradeEnd: ({ task, database, messages }) => {
    const right = database.total === 100 + task.data.add;
    const said = messages.at(-1)?.content?.includes(String(database.total)) === true;
    const grade = weigh({ state: [1, Number(right)], told: [1, Number(said)] });
    return { ...grade, success: right && said };
  },
  limits: { turns: 4, callsPerTurn: 2, mistakes: 1, tokensPerTurn: 20, tokens: 100, seconds: 10, characters: 50 },
};

const say = (content: string): PlayedTurn => ({
  kind: 'said',
  message: { role: 'assistant', content },
  finish: 'stop',
});
const call = (name: string, args: string, id = 'c'): AssistantMessage => ({
  role: 'assistant',
  content: null,
  tool_calls: [{ id, type: 'function', function: { name, arguments: args } }],
});
const does = (name: string, args: unknown): PlayedTurn => ({
  kind: 'said',
  message: call(name, typeof args === 'string' ? args : JSON.stringify(args)),
  finish: 'stop',
});
/** Answers each conversation by a function of it. */
const player =
  (answer: (one: Conversation) => PlayedTurn): Player =>
  async (conversations) =>
    conversations.map(answer);
const wanted = ({ messages }: Conversation): number => Number(/\d+/.exec(messages[1]!.content!)![0]);
const good = player((one) => {
  const last = one.messages.at(-1)!;
  return last.role === 'tool' ? say(`It is ${JSON.parse(last.content).total}.`) : does('add', { n: wanted(one) });
});
const task = (add: number): Task<{ add: number }> => ({
  id: `t${add}`,
  type: 'add',
  split: 'train',
  seed: 0,
  data: { add },
});
const one = async (p: Player, add = 5, options = {}): Promise<Episode> =>
  (await play(counting, p, [task(add)], options))[0]![0]!;

test('a good player gets full marks, with the conversation and every grade on record', async () => {
  const episode = await one(good);
  expect(episode).toMatchObject({
    outcome: 'done',
    reward: 1,
    success: true,
    parts: { state: 1, told: 1 },
    reasons: [],
  });
  expect(episode.messages).toEqual([
    { role: 'system', content: 'Count.' },
    { role: 'user', content: 'Add 5.' },
    call('add', '{"n":5}'),
    { role: 'tool', tool_call_id: 'c', content: '{"total":105}' },
    { role: 'assistant', content: 'It is 105.' },
  ]);
  expect(episode.turns.map(({ reward }) => reward)).toEqual([1, 1]);
  expect(episode.turns[0]!.steps).toEqual([
    { name: 'add', arguments: { n: 5 }, result: { total: 105 }, mistake: null },
  ]);
  expect(episode.counts).toMatchObject({ toolCalls: 1, mistakes: 0 });
});

test('every attempt has a database of its own', async () => {
  const [group] = await play(counting, good, [task(5)], { attempts: 4 });
  expect(group!.map(({ success }) => success)).toEqual([true, true, true, true]);
  expect(new Set(group!.map(({ seed }) => seed)).size).toBe(4);
  expect(new Set(group!.map(({ id }) => id)).size).toBe(4);
});

test('the user is asked again until they leave', async () => {
  const episode = await one(player((c) => (c.turn === 0 ? say('What?') : say('Bye.'))));
  expect(episode.messages.map(({ content }) => content)).toEqual(['Count.', 'Add 5.', 'What?', 'I said 5.', 'Bye.']);
  expect(episode).toMatchObject({ outcome: 'done', success: false, reward: 0 });
});

test('the same seed gives the same episodes whatever the batch size', async () => {
  const tasks = makeTasks(counting, 'train', 7, 3);
  // Depends on the seed of the turn, as sampling does.
  const noisy = player((c) =>
    c.turn === 0 ? does('add', { n: wanted(c) }) : say(`${c.seed % 2 === 0 ? 'sum' : 'no'} ${c.seed}`),
  );
  const strip = (groups: Episode[][]) => groups.flat().map(({ milliseconds: _, ...rest }) => rest);
  const whole = strip(await play(counting, noisy, tasks, { attempts: 3, seed: 9 }));
  expect(strip(await play(counting, noisy, tasks, { attempts: 3, seed: 9, batch: 1 }))).toEqual(whole);
  expect(strip(await play(counting, noisy, tasks, { attempts: 3, seed: 10 }))).not.toEqual(whole);
});

test('a player sees all waiting conversations at once, groups whole', async () => {
  const sizes: number[] = [];
  const counted: Player = (conversations, signal) => {
    sizes.push(conversations.length);
    return good(conversations, signal);
  };
  await play(counting, counted, [task(1), task(2), task(3)], { attempts: 2, batch: 4 });
  expect(sizes).toEqual([4, 4, 2, 2]);
});

describe('what goes wrong is an outcome of that episode alone', () => {
  test('an unknown tool is a mistake the model is told about, and may recover from', async () => {
    const episode = await one(
      player((c) => (c.turn === 0 ? does('subtract', {}) : c.turn === 1 ? does('add', { n: 5 }) : say('It is 105.'))),
    );
    expect(episode.messages[3]).toMatchObject({ role: 'tool', content: '{"error":"unknown tool"}' });
    expect(episode).toMatchObject({ outcome: 'done', success: true, counts: { mistakes: 1 } });
    expect(episode.turns.map(({ reward }) => reward)).toEqual([0, 1, 1]);
  });

  test.each([
    ['not JSON', '{"n":', 'arguments are not JSON'],
    ['of the wrong type', '{"n":"5"}', 'bad arguments: n'],
    ['with a key nobody knows', '{"n":5,"m":1}', 'bad arguments: m'],
    ['that reach for the prototype', '{"n":5,"__proto__":{"x":1}}', 'bad arguments: __proto__'],
    ['not an object', '5', 'bad arguments: '],
  ])('arguments %s are a mistake and change nothing', async (_, args, error) => {
    const episode = await one(player((c) => (c.turn === 0 ? does('add', args) : say('Bye.'))));
    expect(episode.turns[0]!.steps[0]).toMatchObject({ arguments: null, result: { error }, mistake: 'bad-arguments' });
    expect(episode).toMatchObject({ outcome: 'done', parts: { state: 0 } });
  });

  test('mistakes beyond the limit end it', async () => {
    const episode = await one(player(() => does('nothing', {})));
    expect(episode).toMatchObject({ outcome: 'limit', counts: { mistakes: 2 }, success: false });
  });

  test('a tool that throws ends its episode as crashed, and the others go on', async () => {
    const [[bad], [fine]] = (await play(counting, good, [task(13), task(5)])) as [[Episode], [Episode]];
    expect(bad).toMatchObject({ outcome: 'crashed', detail: 'tool add: thirteen', reward: 0, success: false });
    expect(fine).toMatchObject({ outcome: 'done', success: true });
  });

  test('a tool that never ends is cut off by the clock', async () => {
    const episode = await one(
      player(() => does('sleep', {})),
      5,
      { limits: { seconds: 0.05 } },
    );
    expect(episode).toMatchObject({ outcome: 'limit', detail: 'out of time after 0.05 s' });
  });

  test('an episode that has used up its time ends after the turn', async () => {
    let clock = 0;
    const slow = player(() => {
      clock += 6000;
      return say('Well?');
    });
    const episode = await one(slow, 5, { now: () => clock, limits: { turns: 50 } });
    expect(episode).toMatchObject({ outcome: 'limit', detail: 'out of time after 10 s' });
    expect(episode.turns).toHaveLength(2);
  });

  test('a model that talks for ever is stopped', async () => {
    const episode = await one(player(() => say('Well?')));
    expect(episode).toMatchObject({ outcome: 'limit', detail: 'still talking after 4 turns' });
  });

  test('a cut turn and an unreadable tool call end it, and the turn is graded as broken', async () => {
    const cut = await one(player(() => ({ ...say('so'), kind: 'said', finish: 'length' }) as PlayedTurn));
    expect(cut).toMatchObject({ outcome: 'limit', turns: [{ reward: 0 }] });
    const unread = await one(player(() => ({ ...say('<tool_call>'), malformed: 'no JSON' }) as PlayedTurn));
    expect(unread).toMatchObject({ outcome: 'malformed', detail: 'no JSON', turns: [{ reward: 0 }] });
  });

  test('more calls in a turn than allowed are not run', async () => {
    const calls = ['1', '2', '3'].map((id) => call('add', '{"n":1}', id).tool_calls![0]!);
    const episode = await one(
      player(() => ({
        kind: 'said',
        message: { role: 'assistant', content: null, tool_calls: calls },
        finish: 'stop',
      })),
    );
    expect(episode).toMatchObject({ outcome: 'limit', counts: { toolCalls: 0 } });
  });

  test('a conversation that outgrows the context ends', async () => {
    const tokens = {
      prompt: new Array(60).fill(1),
      completion: new Array(40).fill(2),
      logprobs: [],
      rawLogprobs: null,
      version: 1,
    };
    const episode = await one(player(() => ({ ...say('Well?'), tokens }) as PlayedTurn));
    expect(episode).toMatchObject({
      outcome: 'limit',
      detail: '100 tokens, where 100 are allowed',
      counts: { contextTokens: 100, completionTokens: 40 },
    });
    const full = await one(player(() => ({ kind: 'full', detail: 'no room' })));
    expect(full).toMatchObject({ outcome: 'limit', detail: 'no room' });
  });

  test('a player that throws or miscounts fails what it was asked', async () => {
    const thrown = await one(async () => {
      throw new Error('server down');
    });
    expect(thrown).toMatchObject({ outcome: 'failed', detail: 'server down', turns: [] });
    expect((await one(async () => [])).outcome).toBe('failed');
  });

  test('a user or a grader that throws is a crash of the environment', async () => {
    const broken = (change: Partial<typeof counting>) => play({ ...counting, ...change }, good, [task(5)]);
    const fail = (): never => {
      throw new Error('oops');
    };
    for (const change of [
      { user: fail },
      { user: () => ({ open: () => 'Add 5.', answer: fail }) },
      { database: fail },
      { gradeTurn: fail },
      { gradeEnd: fail },
    ]) {
      const [[episode]] = (await broken(change)) as [[Episode]];
      expect(episode).toMatchObject({ outcome: 'crashed', reward: 0, success: false });
      expect(episode.detail).toContain('oops');
    }
  });

  test('tool results and user messages are cut to size', async () => {
    const long: typeof counting = {
      ...counting,
      user: () => ({ open: () => 'Add 5. '.repeat(100), answer: () => null }),
    };
    const [[episode]] = (await play(
      long,
      player(() => say('no')),
      [task(5)],
    )) as [[Episode]];
    expect(episode.messages[1]!.content).toHaveLength(50);
  });

  test('a reward that is not a number counts as 0, and one above 1 as 1', async () => {
    const grade = (reward: number) => ({ reward, parts: {}, reasons: [], success: true });
    const odd = async (reward: number) =>
      (await play({ ...counting, gradeEnd: () => grade(reward) }, good, [task(5)]))[0]![0]!.reward;
    expect([await odd(Number.NaN), await odd(7), await odd(-1)]).toEqual([0, 1, 0]);
  });
});

test('aborting stops the play', async () => {
  const stop = new AbortController();
  const endless: Player = async (c) => {
    stop.abort(new Error('enough'));
    return c.map(() => say('Well?'));
  };
  await expect(play(counting, endless, [task(5)], { signal: stop.signal })).rejects.toThrow('enough');
});

describe('tasks', () => {
  test('a task is pure in type, split and seed', () => {
    expect(makeTask(counting, 'add', 'train', 4)).toEqual(makeTask(counting, 'add', 'train', 4));
    const seeds = Array.from({ length: 20 }, (_, seed) => makeTask(counting, 'big', 'train', seed).data.add);
    expect(new Set(seeds).size).toBeGreaterThan(10);
  });

  test('types take turns', () => {
    expect(makeTasks(counting, 'golden', 5, 1).map(({ type }) => type)).toEqual(['add', 'big', 'add', 'big', 'add']);
  });

  test('an unknown type is refused by name', () => {
    expect(() => makeTask(counting, 'toString', 'train', 1)).toThrow("no task type 'toString'; it has add, big");
  });

  test('a task from outside is checked', () => {
    const line = JSON.parse(JSON.stringify(makeTask(counting, 'add', 'golden', 1)));
    expect(parseTask(counting, line)).toEqual(line);
    expect(() => parseTask(counting, { ...line, data: { add: 'x' } })).toThrow();
    expect(() => parseTask(counting, { ...line, type: 'other' })).toThrow("has type 'other'");
  });
});

test('weigh() is the weighted mean, with reasons for what is below 1', () => {
  expect(weigh({ a: [0.75, 1], b: [0.25, 0, 'too late'] })).toEqual({
    reward: 0.75,
    parts: { a: 1, b: 0 },
    reasons: ['too late'],
  });
});
