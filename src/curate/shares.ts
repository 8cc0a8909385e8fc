/**
 * Nobody teaches the model by talking a lot: the share of a dataset that one user, one client key, one tenant or one task type
 * may have, each its best. Pure. They count after near-duplicates went, so that saying one thing in a hundred ways brings
 * nothing.
 */

/**
 * The most rows one of them may have: the largest number that is at most `share` of what is then kept. One row is always
 * allowed; with fewer of them than 1 / share that is all there can be.
 */
export function shareLimit(rowsOfEach: readonly number[], share: number): number {
  const largest = rowsOfEach.reduce((a, b) => Math.max(a, b), 0);
  const kept = (limit: number) => rowsOfEach.reduce((sum, rows) => sum + Math.min(rows, limit), 0);
  // limit / kept(limit) never falls as the limit grows, so halving finds where it becomes too much. The small addition is
  // for products such as 0.29 × 100, which come out just below 29.
  let fits = 1;
  let tooMuch = largest + 1;
  while (tooMuch - fits > 1) {
    const limit = Math.floor((fits + tooMuch) / 2);
    if (limit <= share * kept(limit) + 1e-9) fits = limit;
    else tooMuch = limit;
  }
  return fits;
}

/**
 * Which of these to keep, given best first. `of`: whose each is; one that is nobody's counts for itself. Of several owners each
 * must have room.
 */
export function withinShare(of: readonly (readonly string[])[], share: number): boolean[] {
  if (share >= 1) return of.map(() => true);
  const rows = new Map<string, number>();
  for (const owner of of.flat()) rows.set(owner, (rows.get(owner) ?? 0) + 1);
  const nobodys = of.filter((owners) => owners.length === 0).map(() => 1);
  // One of several is counted once, for whoever has most, so that it does not make the whole look larger than it is.
  const counted = new Map<string, number>();
  for (const owners of of) {
    const [most] = [...owners].sort((a, b) => rows.get(b)! - rows.get(a)! || (a < b ? -1 : 1));
    if (most !== undefined) counted.set(most, (counted.get(most) ?? 0) + 1);
  }
  const limit = shareLimit([...counted.values(), ...nobodys], share);
  const taken = new Map<string, number>();
  return of.map((owners) => {
    if (owners.some((owner) => (taken.get(owner) ?? 0) >= limit)) return false;
    for (const owner of owners) taken.set(owner, (taken.get(owner) ?? 0) + 1);
    return true;
  });
}

/** Where there are so few that no share could be kept, as with one key for all, equal parts are. */
export const attainable = (of: readonly (readonly string[])[], share: number): number =>
  Math.max(share, 1 / Math.max(1, new Set(of.flat()).size));
