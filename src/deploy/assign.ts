/**
 * Who gets the candidate. Pure: the hash of rollout and user lies evenly in [0, 1), and those below the weight are in. As the
 * weight only grows, whoever is in stays in; another rollout begins with other users. Nothing is stored, so every gateway
 * answers alike.
 */
import { createHash } from 'node:crypto';

/** In [0, 1): the first 53 bits of a SHA-256. */
export function position(rollout: string, unit: string): number {
  const digest = createHash('sha256').update(rollout).update('\u0000').update(unit).digest();
  return (digest.readUInt32BE(0) * 2 ** 21 + (digest.readUInt32BE(4) >>> 11)) / 2 ** 53;
}

export const isAssigned = (rollout: string, unit: string, weight: number): boolean =>
  weight >= 1 || (weight > 0 && position(rollout, unit) < weight);

/** What stays together: everything of a user, else of a trajectory, else nothing. The two must not collide. */
export const unitOf = (user: string | null, trajectory: string | null): string | null =>
  user !== null ? `u:${user}` : trajectory !== null ? `t:${trajectory}` : null;
