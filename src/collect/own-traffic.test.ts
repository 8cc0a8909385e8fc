import { expect, test } from 'vitest';
import { mayTrain } from './own-traffic.ts';
import { consents, type Origin, origins } from './trajectory.ts';

test('of all combinations only production with consent may train', () => {
  const allowed = origins.flatMap((origin) =>
    consents.filter((consent) => mayTrain({ origin, consent })).map((consent) => `${origin} ${consent}`),
  );
  expect(allowed).toEqual(['production given']);
});

test('simulation is used only by those who ask for it, and never mixed with production', () => {
  expect(mayTrain({ origin: 'simulation', consent: 'unknown' }, 'simulation')).toBe(true);
  expect(mayTrain({ origin: 'production', consent: 'given' }, 'simulation')).toBe(false);
  expect(mayTrain({ origin: 'simulation', consent: 'withdrawn' }, 'simulation')).toBe(false);
});

test('what it does not know is a no', () => {
  expect(mayTrain({ origin: 'imported' as Origin, consent: 'given' })).toBe(false);
  expect(mayTrain({ origin: 'production', consent: 'given' }, 'anything' as 'production')).toBe(false);
});
