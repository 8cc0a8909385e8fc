/** What becomes of labels; a model itself is run in test/entities.interop.test.ts. */
import { expect, test } from 'vitest';
import { decode } from './onnx-finder.ts';

/** Words of one letter, a space between them. */
const found = (labels: string) =>
  decode(labels.split(' ').map((label, i) => ({ start: 2 * i, end: 2 * i + 1, label, score: 1 - i / 10 }))).map(
    ({ kind, start, end, confidence }) => `${kind} ${start}-${end} ${confidence}`,
  );

test('labels in BIO become spans, as sure as their least sure word', () => {
  expect(found('O B-PER I-PER O B-LOC')).toEqual(['person 2-5 0.8', 'location 8-9 0.6']);
  expect(found('B-PER B-PER I-LOC I-PER')).toEqual([
    'person 0-1 1',
    'person 2-3 0.9',
    'location 4-5 0.8',
    'person 6-7 0.7',
  ]);
});

test('so do labels in BIOES, and what no kind of ours is named by ends what is open', () => {
  expect(found('B-person E-person I-person S-ORG')).toEqual([
    'person 0-3 0.9',
    'person 4-5 0.8',
    'organization 6-7 0.7',
  ]);
  expect(found('B-PER I-MISC I-PER LABEL_0')).toEqual(['person 0-1 1', 'person 4-5 0.8']);
});
