import { type Message, splits } from 'pawl';
import { expect, test } from 'vitest';
import { broad, corpus, habitualEpisodes } from './corpus.ts';
import { entities } from './entities.ts';
import { readGolden } from './golden.ts';

const episodes = await habitualEpisodes(2000, 1);

async function take(seed: number, conversations: number): Promise<(readonly Message[])[]> {
  const lines: (readonly Message[])[] = [];
  for await (const messages of corpus({ seed, conversations })) lines.push(messages);
  return lines;
}

test('the corpus is the same for the same seed, and as long as asked', async () => {
  const lines = await take(1, 500);
  expect(lines).toHaveLength(500);
  expect(await take(1, 500)).toEqual(lines);
  expect(await take(2, 500)).not.toEqual(lines);
});

test('its decisions are right about half the time, in every task type, so the policy is not in it', async () => {
  const success = (list: typeof episodes) => list.filter((one) => one.success).length / list.length;
  expect(success(episodes)).toBeGreaterThan(0.42);
  expect(success(episodes)).toBeLessThan(0.55);
  for (const type of new Set(episodes.map((one) => one.type))) {
    const share = success(episodes.filter((one) => one.type === type));
    expect([type, share > 0.3 && share < 0.65]).toEqual([type, true]);
  }
});

test('where the customer may not have what they ask, the usual thing is to grant it all the same', async () => {
  const denied = episodes.filter(
    ({ type, messages }) =>
      type === 'cancel' && messages.some((m) => m.role === 'tool' && /shipped|delivered/.test(m.content)),
  );
  const granted = denied.filter(({ turns }) =>
    turns.some(({ steps }) => steps.some(({ name }) => name === 'cancel_order')),
  );
  const right = denied.filter(({ success }) => success);
  expect(denied.length).toBeGreaterThan(60);
  expect(granted.length).toBeGreaterThan(right.length * 0.8);
});

test('syntax is always right: no malformed call, no unknown tool, and every conversation ends', async () => {
  expect(episodes.filter(({ outcome, counts }) => outcome !== 'done' || counts.mistakes > 0)).toEqual([]);
});

test('no entity and no opening of the golden set is in it', async () => {
  const text = (await take(4, 1200)).flatMap((messages) => messages.map(({ content }) => content ?? '')).join('\n');
  for (const kind of ['email', 'card', 'product', 'town'] as const) {
    expect(entities(kind, 'golden').filter((one) => text.includes(one))).toEqual([]);
  }
  // Four digits that are part of an address or a card are no order.
  const orders = new Set(text.replace(/\S+@\S+|\d{4}( \d{4}){3}/g, '').match(/\d{4}/g));
  expect(entities('order', 'golden').filter((one) => orders.has(one))).toEqual([]);
  const openings = new Set(text.split('\n'));
  expect(readGolden().filter(({ data }) => openings.has(data.opening))).toEqual([]);
});

test('broad cases have one right answer and keep to their split', () => {
  for (const split of splits) {
    const cases = broad(split, 300, 1);
    for (const { messages, answer } of cases) expect(messages[1].content).toBe(answer);
    const numbers = cases.filter(({ kind }) => kind === 'copy').flatMap(({ answer }) => answer.match(/^\d{4}/g) ?? []);
    expect(numbers.length).toBeGreaterThan(5);
    expect(numbers.filter((one) => !entities('order', split).includes(one))).toEqual([]);
  }
  const compared = broad('train', 400, 2).filter(({ kind }) => kind === 'compare');
  for (const { messages, answer } of compared) {
    const [, a, word, b] = /Is (\d+) (more|less) than (\d+)/.exec(messages[0].content!)!;
    const yes = word === 'more' ? Number(a) > Number(b) : Number(a) < Number(b);
    expect(answer.startsWith('Yes')).toBe(yes);
  }
});
