/**
 * A map that forgets. It has two halves: what is set goes into the younger; when that is full it becomes the older, and
 * what the older held is gone. So the latest half of `limit` is always there and never more than `limit`, and
 * no call walks over anything (a Map used as a queue does: it steps over every entry deleted at its front).
 */
export type Recent<V, K = string> = {
  get(key: K): V | undefined;
  /** `weight` counts towards the limit: 1, or a text's length. An entry heavier than half the limit is not kept. */
  set(key: K, value: V, weight?: number): void;
  /** Forgets the older half, as when the younger is full. */
  age(): void;
  size(): number;
};

export function createRecent<V, K = string>(limit: number): Recent<V, K> {
  let younger = new Map<K, V>();
  let older = new Map<K, V>();
  let held = 0;
  const age = () => {
    older = younger;
    younger = new Map();
    held = 0;
  };
  return {
    get: (key) => younger.get(key) ?? older.get(key),
    set(key, value, weight = 1) {
      if (weight > limit / 2) return;
      if (!younger.has(key)) {
        if (held + weight > limit / 2) age();
        held += weight;
      }
      younger.set(key, value);
    },
    age,
    size: () => younger.size + older.size,
  };
}
