import { expect, it, test } from 'vitest';
import { parseRubric } from './rubric-file.ts';

const file = `# Tone

What we expect of every answer.

## Essential

- Answers in the language of the user,
  whatever language the documents are in.
- Names the order. \`/order \\d+/i\`

## Pitfalls
* Promises a day of delivery. (2)
+ Says sorry. \`/sorry/\` (0.5)
`;

it('reads levels, criteria, rules and weights; other text is for people', () => {
  expect(parseRubric(file, 'tone.md')).toEqual([
    { level: 'essential', text: 'Answers in the language of the user, whatever language the documents are in.' },
    { level: 'essential', text: 'Names the order.', rule: /order \d+/i },
    { level: 'pitfall', text: 'Promises a day of delivery.', weight: 2 },
    { level: 'pitfall', text: 'Says sorry.', weight: 0.5, rule: /sorry/ },
  ]);
});

test.each([
  ['## Nice to have\n- Rhymes.', "line 1: 'Nice to have' is no level; use essential, important, optional, pitfall."],
  ['- Rhymes.', "line 1: a criterion needs a level above it, such as '## Essential'."],
  ['## Essential\n- Rhymes. `/(/`', 'line 2: Invalid regular expression'],
  ['## Essential\n- Rhymes. (0)', 'has weight 0; give a number above 0.'],
  ['# Tone', 'has no criterion'],
  [`## Optional\n${'- Rhymes.\n'.repeat(101)}`, 'has 101 criteria; at most 100 are read.'],
  [`## Optional\n- ${'x'.repeat(3000)}`, 'a criterion has 3000 characters'],
])('%j is refused with the place and the way out', (text, why) => {
  expect(() => parseRubric(text, 'tone.md')).toThrow(why);
});
