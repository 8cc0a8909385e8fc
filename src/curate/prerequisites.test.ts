import { expect, test } from 'vitest';
import { conditionsOf, type DatasetFacts, needs, unready } from './prerequisites.ts';

const facts = (fields: Partial<DatasetFacts> = {}): DatasetFacts => ({
  ...{
    dataset: 'desk-v1',
    on: 'production',
    rows: 4900,
    pairs: 100,
    unclean: 0,
    personal: 0,
    lapsed: 0,
    kAnonymity: 5,
  },
  taskTypes: { a: 1000, b: 1000, c: 1000, d: 1000, e: 900 },
  ...{ planted: { canaries: [], repeated: [] }, shifts: [] },
  ...fields,
});
const unmet = (fields: Partial<DatasetFacts>) =>
  conditionsOf(facts(fields), needs.parse({}))
    .filter(({ met }) => !met)
    .map(({ name }) => name);

test('each condition holds at its threshold and not below', () => {
  expect(unmet({})).toEqual([]);
  expect(unmet({ rows: 4899 })).toEqual(['points']);
  expect(unmet({ unclean: 250 })).toEqual([]);
  expect(unmet({ unclean: 251 })).toEqual(['clean']);
  expect(unmet({ personal: 1 })).toEqual(['private']);
  expect(unmet({ lapsed: 1 })).toEqual(['private']);
  expect(unmet({ kAnonymity: 4 })).toEqual(['private']);
  expect(unmet({ kAnonymity: 1, on: 'simulation' })).toEqual([]);
  expect(unmet({ taskTypes: { a: 2450, b: 1000, c: 1000, unknown: 450 } })).toEqual(['types']);
  expect(unmet({ taskTypes: { a: 2451, b: 1000, c: 1000, d: 400, e: 49 } })).toEqual(['balance']);
  expect(unmet({ planted: { canaries: [{ phrase: 0, found: 1, first: 'x' }], repeated: [] } })).toEqual(['canaries']);
  const shift = { key: 'k', taskType: 'a', before: 0.5, now: 0.9, conversations: 30 };
  expect(unmet({ shifts: [shift] })).toEqual(['shifts']);
});

test('what does not hold refuses by name, with what to do, and only that name lets it through', () => {
  const conditions = conditionsOf(facts({ rows: 0, pairs: 10, taskTypes: {} }), needs.parse({}));
  const said = unready('desk-v1', conditions, ['points']);
  expect(said).toMatch(/types: 0 task types, needed: 5 or more\. Let the agent say/);
  expect(said).toContain('--without types');
  expect(said).not.toContain('points');
  expect(unready('desk-v1', conditions, ['points', 'types'])).toBeNull();
});
