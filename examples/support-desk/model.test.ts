/** The committed base model: it loads, it plays, and it is as weak as a base to be improved should be. */
import { fileURLToPath } from 'node:url';
import { play } from 'pawl';
import { createOnnxEngine, enginePlayer, loadChatCodec, measureSuccess } from 'pawl/engine';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { supportDesk } from './desk.ts';
import { readGolden } from './golden.ts';

const folder = fileURLToPath(new URL('model', import.meta.url));
const codec = await loadChatCodec(folder);
const golden = readGolden();
const engine = createOnnxEngine();
beforeAll(() => engine.load('base', folder));
afterAll(() => engine.close());

describe('the committed base model', () => {
  it('plays the same episodes again for the same seed, whatever is played beside them', async () => {
    const player = enginePlayer(engine, 'base', codec);
    const words = async (count: number) =>
      (await play(supportDesk, player, golden.slice(0, count), { attempts: 2, seed: 5 }))
        .slice(0, 4)
        .flat()
        .map(({ messages, outcome, reward }) => ({ messages, outcome, reward }));
    const few = await words(4);
    expect(few).toHaveLength(8);
    expect(await words(8)).toEqual(few);
  });

  it('knows tool syntax: sampling never crashes an episode, and most episodes call a tool', async () => {
    const episodes = (
      await play(supportDesk, enginePlayer(engine, 'base', codec), golden.slice(0, 32), { seed: 1 })
    ).flat();
    expect(episodes.filter(({ outcome }) => outcome === 'crashed' || outcome === 'failed')).toEqual([]);
    const called = episodes.filter(({ messages }) => messages.some(({ role }) => role === 'tool'));
    expect(called.length / episodes.length).toBeGreaterThan(0.6);
  });

  it('solves 30 to 55% of the golden tasks at temperature 1, and some of each type', async () => {
    const { success, episodes, types } = await measureSuccess(supportDesk, golden, codec, engine, 'base', {
      attempts: 2,
      seed: 1,
    });
    expect(episodes).toBe(300);
    expect(success).toBeGreaterThan(0.3);
    expect(success).toBeLessThan(0.55);
    expect(Object.keys(types)).toHaveLength(8);
    for (const type of Object.values(types)) expect(type.success).toBeGreaterThan(0.1);
  });

  it('does better when it takes its likeliest word, which shows that it knows more than it does', async () => {
    const greedy = await measureSuccess(supportDesk, golden, codec, engine, 'base', { temperature: 0 });
    expect(greedy.success).toBeGreaterThan(0.5);
    expect(greedy.success).toBeLessThan(0.75);
  });
});
