import { expect, test } from 'vitest';
import { createKnownThreads, packThreads, unpackThreads } from './known-threads.ts';

test('points come back as they were reported, oldest first, those of earlier processes before all others', () => {
  const known = createKnownThreads();
  const point = (name: string, at: number) => ({ threadKey: `${name}.key`, trajectory: name, at });
  known.add(packThreads([point('b', 2), point('c', 3)]));
  known.addOlder(packThreads([point('a', 1)]));
  known.add(packThreads([point('d', 4)]));
  expect(known.pieces().flatMap(unpackThreads)).toEqual([point('a', 1), point('b', 2), point('c', 3), point('d', 4)]);
});

test('only the newest are kept, and what is older only while there is room', () => {
  const known = createKnownThreads(100);
  for (let i = 0; i < 1000; i++) known.add(String(i).padStart(10, '0'));
  known.addOlder('x'.repeat(10));
  expect(known.pieces()).toEqual(Array.from({ length: 10 }, (_, i) => String(990 + i).padStart(10, '0')));
  const roomy = createKnownThreads(25);
  roomy.add('new');
  roomy.addOlder('older');
  roomy.addOlder('oldest');
  roomy.addOlder('x'.repeat(25));
  expect(roomy.pieces()).toEqual(['oldest', 'older', 'new']);
});
