/** Between which moments there are days to keep anything in, and how far a sender's clock may be from ours. In milliseconds. */
export const earliestTime = Date.UTC(2000, 0, 1);
/** Exclusive. */
export const latestTime = Date.UTC(2100, 0, 1);
export const clockErrorMs = 24 * 3_600_000;

/** A turn joins a trajectory of the same id that began at most this many days before or after it. */
export const joinWindowDays = 7;

/** When a UUIDv7 was made; null: it is none, or its time is none. */
export const timeOfUuid = (id: string): number | null => {
  const at = Number.parseInt(id.replaceAll('-', '').slice(0, 12), 16);
  return id[14] === '7' && at >= earliestTime && at < latestTime ? at : null;
};
