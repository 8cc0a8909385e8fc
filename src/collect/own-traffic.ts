/**
 * The one guard between what was recorded and what may be learned from. Everything that builds training data asks
 * here, so Pawl's own calls (shadow, evaluation, judges) can never feed back into the model. It fails closed: an origin
 * or consent it does not know is a no. Simulated episodes carry no user, so they need no consent, but only code that
 * trains in simulation asks for them by name.
 */
import type { Consent, Origin } from './trajectory.ts';

export type Training = 'production' | 'simulation';

export function mayTrain(
  trajectory: { readonly origin: Origin; readonly consent: Consent },
  on: Training = 'production',
): boolean {
  if (on === 'production') return trajectory.origin === 'production' && trajectory.consent === 'given';
  if (on === 'simulation') return trajectory.origin === 'simulation' && trajectory.consent !== 'withdrawn';
  return false;
}
