/** Between which moments there are days to keep anything in, and how far a sender's clock may be from ours. In milliseconds. */
export const earliestTime = Date.UTC(2000, 0, 1);
/** Exclusive. */
export const latestTime = Date.UTC(2100, 0, 1);
export const clockErrorMs = 24 * 3_600_000;
