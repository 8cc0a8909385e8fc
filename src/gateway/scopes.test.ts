import { expect, test } from 'vitest';
import type { Scope } from '../store/keys.ts';
import { checkScope } from './scopes.ts';

const may = (scopes: readonly Scope[], route: string): boolean => {
  try {
    checkScope({ name: 'web', agent: 'desk', scopes }, route);
    return true;
  } catch {
    return false;
  }
};

test.each([
  ['/chat/completions', ['call']],
  ['/embeddings', ['call']],
  ['/a-route-of-tomorrow', ['call']],
  ['/feedback', ['feedback']],
  ['/events', ['feedback']],
  ['/outcomes', ['outcomes']],
  ['/attach', ['call', 'outcomes']],
  ['/models', ['call', 'read']],
  ['/models/small', ['call', 'read']],
] as const)('%s is for keys with one of %j', (route, allowed) => {
  const all = ['call', 'feedback', 'outcomes', 'read'] as const;
  expect(all.filter((scope) => may([scope], route))).toEqual(allowed);
});

test('a refusal names the scope and the command that makes such a key', () => {
  expect(() => checkScope({ name: 'web', agent: 'desk', scopes: ['call', 'feedback'] }, '/outcomes')).toThrow(
    'Key web may not use /v1/outcomes: that needs the scope outcomes, and it has call, feedback. Make a key that has it: pawl keys create NAME --agent desk --scope outcomes.',
  );
});
