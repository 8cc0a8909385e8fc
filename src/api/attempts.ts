/**
 * Counts wrong tokens by the address they come from, so that nobody tries many: tokens have 256 random bits, but looking one up asks
 * the database. Remembers a bounded number of addresses; the oldest is forgotten first.
 */
export type Attempts = {
  /** Seconds until this address may try again; 0: now. */
  waitFor(address: string, now: number): number;
  failed(address: string, now: number): void;
};

export function createAttempts({ most = 10, withinMs = 60_000, addresses = 10_000 } = {}): Attempts {
  const seen = new Map<string, { count: number; since: number }>();
  return {
    waitFor(address, now) {
      const found = seen.get(address);
      if (found === undefined || found.count < most) return 0;
      const left = found.since + withinMs - now;
      if (left > 0) return Math.ceil(left / 1000);
      seen.delete(address);
      return 0;
    },
    failed(address, now) {
      const found = seen.get(address);
      if (found !== undefined && now - found.since < withinMs) {
        found.count++;
        return;
      }
      seen.delete(address);
      seen.set(address, { count: 1, since: now });
      const oldest = seen.keys().next();
      if (seen.size > addresses && !oldest.done) seen.delete(oldest.value);
    },
  };
}
