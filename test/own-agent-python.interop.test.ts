/**
 * The Python example as it stands, with openai's client from PyPI in a virtual environment of its own (20 MB; python.ts says where, and what
 * it needs).
 */
import { beforeAll, expect, test } from 'vitest';
import { makeTasks } from '../src/simulate/environment.ts';
import { play } from '../src/simulate/episode.ts';
import type { Player } from '../src/simulate/player.ts';
import { leftOut, pythonMissing, venv } from './python.ts';

const openai = venv('openai-2');

beforeAll(async () => {
  if (pythonMissing !== null) return;
  await openai.once('openai', (pip) => pip('openai>=2,<3'));
  process.env.PYTHON = openai.bin('python');
}, 600_000);

/** Calls the tool with the numbers of the question, then says what it said; every other one forgets the tool. */
const model: Player = async (conversations) =>
  conversations.map(({ messages, attempt, tools, previous }) => {
    const last = messages.at(-1)!;
    expect(tools.map(({ function: { name } }) => name)).toEqual(['add']);
    const tokens = { prompt: [1], completion: [2], logprobs: [-1], rawLogprobs: [-1], version: 1 };
    const done = { kind: 'said', finish: 'stop', tokens } as const;
    if (attempt === 1) return { ...done, message: { role: 'assistant', content: 'No idea.' } };
    if (last.role === 'tool') {
      expect(previous).toMatchObject({ messages: 3 }); // the client's way of keeping an answer is known again
      return { ...done, message: { role: 'assistant', content: last.content } };
    }
    const [a, b] = last.content!.match(/\d+/g)!.map(Number);
    const call = { name: 'add', arguments: JSON.stringify({ a, b }) };
    return {
      ...done,
      message: { role: 'assistant', content: null, tool_calls: [{ id: 'c', type: 'function', function: call }] },
    };
  });

test.skipIf(pythonMissing !== null)(
  `the agent in Python asks with its tool, goes on from its own tokens, and is graded by what it prints${leftOut}`,
  async () => {
    const { clerk } = await import('../examples/own-agent-python/clerk.ts');
    const [group] = await play(clerk, model, makeTasks(clerk, 'train', 1, 1), { attempts: 2 });
    const [right, wrong] = group!;
    expect(right).toMatchObject({ outcome: 'done', success: true, reward: 1, turns: [{}, {}] });
    expect(wrong).toMatchObject({ outcome: 'done', success: false, reward: 0, turns: [{}] });
  },
);
