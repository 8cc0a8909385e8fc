/**
 * Nobody teaches the model by talking a lot: the share of a dataset that one user, one client key, one tenant or one task type
 * may have, each its best. Pure. They count after near-duplicates went, so that saying one thing in a hundred ways brings
 * nothing.
 */
import type { Owners } from './names.ts';

/**
 * The most rows one of them may have: the largest number that is at most `share` of what is then kept. One row is always
 * allowed; with fewer of them than 1 / share that is all there can be. `nobodys`: rows that count for themselves.
 */
export function shareLimit(rowsOfEach: readonly number[] | Uint32Array, share: number, nobodys = 0): number {
  let largest = 0;
  for (const rows of rowsOfEach) largest = Math.max(largest, rows);
  const kept = (limit: number): number => {
    let sum = nobodys;
    for (const rows of rowsOfEach) sum += Math.min(rows, limit);
    return sum;
  };
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
 * Which of these to keep, given best first. `owners`: whose each is; one that is nobody's counts for itself. Of several owners each
 * must have room.
 */
export function withinShare(order: Uint32Array, owners: Owners, share: number): Uint8Array {
  const fits = new Uint8Array(order.length).fill(1);
  if (share >= 1) return fits;
  const { names } = owners;
  const rows = rowsOfEach(order, owners);
  // One of several is counted once, for whoever has most, so that it does not make the whole look larger than it is.
  const counted = new Uint32Array(names.count);
  let nobodys = 0;
  for (const one of order) {
    const of = owners.of(one);
    const most = of.reduce<number | null>((a, b) => (a === null || hasMore(b, a) ? b : a), null);
    if (most === null) nobodys++;
    else counted[most]!++;
  }
  function hasMore(a: number, b: number): boolean {
    const more = rows[a]! - rows[b]!;
    return more > 0 || (more === 0 && names.name(a) < names.name(b));
  }
  const limit = shareLimit(counted, share, nobodys);
  const taken = new Uint32Array(names.count);
  for (let i = 0; i < order.length; i++) {
    const of = owners.of(order[i]!);
    if (of.some((owner) => taken[owner]! >= limit)) fits[i] = 0;
    else for (const owner of of) taken[owner]!++;
  }
  return fits;
}

function rowsOfEach(order: Uint32Array, owners: Owners): Uint32Array {
  const rows = new Uint32Array(owners.names.count);
  for (const one of order) for (const owner of owners.of(one)) rows[owner]!++;
  return rows;
}

/** Where there are so few that no share could be kept, as with one key for all, equal parts are. */
export function attainable(order: Uint32Array, owners: Owners, share: number): number {
  if (share >= 1) return share;
  const there = rowsOfEach(order, owners).reduce((count, rows) => count + (rows > 0 ? 1 : 0), 0);
  return Math.max(share, 1 / Math.max(1, there));
}
