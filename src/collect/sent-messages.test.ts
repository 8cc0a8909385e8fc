import { expect, test } from 'vitest';
import { createSentMessages } from './sent-messages.ts';

const noon = Date.UTC(2026, 4, 20, 12);
const minutes = 60_000;

test('a message is known once the journal has it, for a few minutes, to turns of the same agent and day', () => {
  const sent = createSentMessages('s');
  const desk = { agent: 'desk', startedAt: noon };
  const isKnown = (of: typeof desk, at: number) => sent.naming(of, at).isKnown('a');
  const first = sent.naming(desk, 0);
  expect(first.isKnown('a')).toBe(false);
  expect(isKnown(desk, 1)).toBe(false); // not acknowledged yet
  first.acknowledged();
  expect(isKnown(desk, 4 * minutes)).toBe(true);
  expect(isKnown({ ...desk, agent: 'shop' }, 1)).toBe(false);
  expect(isKnown({ ...desk, startedAt: noon + 12 * 60 * minutes }, 1)).toBe(false);
  expect(isKnown(desk, 5 * minutes)).toBe(false);
  const again = sent.naming(desk, 5 * minutes);
  again.isKnown('a');
  again.acknowledged();
  expect(isKnown(desk, 9 * minutes)).toBe(true);
});
