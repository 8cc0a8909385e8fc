import { expect, test } from 'vitest';
import type { Spoken } from './environment.ts';
import { random } from './random.ts';
import { type Script, scriptedUser, speak } from './scripted.ts';

const script: Script = {
  persona: 'calm',
  seed: 1,
  opening: 'Hello, please cancel my order.',
  answers: [{ to: /number/, say: 'It is 4821.' }],
  keep: ['Oakford'],
};
const talk = (...texts: string[]): Spoken[] => texts.map((text, i) => ({ who: i % 2 === 0 ? 'user' : 'agent', text }));

test('a calm user opens as written, answers once when asked, and leaves otherwise', () => {
  const user = scriptedUser(script);
  expect(user.open()).toBe('Hello, please cancel my order.');
  expect(user.answer(talk('x', 'Which number?'))).toBe('It is 4821.');
  expect(user.answer(talk('x', 'Which number?', 'It is 4821.', 'Which number?'))).toBeNull();
  expect(user.answer(talk('x', 'Done.'))).toBeNull();
});

test('a repeating user says it twice and answers twice', () => {
  const user = scriptedUser({ ...script, persona: 'repeating' });
  expect(user.open()).toMatch(/^Hello, please cancel my order\. .+: Cancel my order\.$/);
  expect(user.answer(talk('x', 'number?', '4821', 'number?'))).toContain('4821');
  expect(user.answer(talk('x', 'number?', '4821', 'number?', '4821', 'number?'))).toBeNull();
});

test('a user who changes their mind does so with their first answer', () => {
  const user = scriptedUser({ ...script, persona: 'changes-mind', instead: 'Keep it. Where is it?' });
  expect(user.answer(talk('x', 'number?'))).toBe('It is 4821. Keep it. Where is it?');
});

test('a terse user drops politeness and nothing else', () => {
  expect(speak('terse', 'Hello, please cancel 4821.', random(1))).toBe('Cancel 4821.');
  expect(speak('terse', 'Please.', random(1))).not.toBe('');
});

test('a panicked user says the same and more', () => {
  for (let seed = 0; seed < 20; seed++) {
    const text = speak('panicked', 'Cancel 4821.', random(seed));
    expect(text).toContain('Cancel 4821.');
    expect(text.length).toBeGreaterThan('Cancel 4821.'.length);
  }
});

test('typos change letters, never digits or protected words', () => {
  const text = 'Please change the address of order 4821 to Oakford.';
  let changed = 0;
  for (let seed = 0; seed < 50; seed++) {
    const typed = speak('typos', text, random(seed), ['Oakford']);
    expect(typed).toContain('4821');
    expect(typed).toContain('Oakford');
    if (typed !== text) changed++;
  }
  // A swap of two equal letters is invisible, so not quite all.
  expect(changed).toBeGreaterThan(35);
});

test('the same seed says the same', () => {
  const open = (seed: number) => scriptedUser({ ...script, persona: 'typos', seed }).open();
  expect(open(3)).toBe(open(3));
  expect(new Set([1, 2, 3, 4, 5].map(open)).size).toBeGreaterThan(1);
});
