/**
 * What it took long to look at, for whoever looks again: the answer of a while ago at once, and meanwhile a new look where it is old. In this
 * process only and for minutes, since answers may name conversations, which may have to be forgotten. Figures that name none are kept by
 * store/figures.ts.
 */
export type Looked<T> = { readonly value: T; readonly at: Date };

/** Answers that are held at once. */
const most = 20;
const heldMs = 600_000;
/** An answer is as good as new for so long, or so many times as long as the look took. */
const newFor = { ms: 30_000, looks: 100 };

export function recentLooks<T>(now: () => number = Date.now) {
  const held = new Map<string, { readonly looked: Looked<T>; readonly tookMs: number }>();
  const underWay = new Map<string, Promise<Looked<T>>>();
  const lookNow = (key: string, look: () => Promise<T>): Promise<Looked<T>> => {
    const same = underWay.get(key);
    if (same !== undefined) return same;
    const work = async () => {
      const at = new Date(now());
      const looked = { value: await look(), at };
      held.delete(key);
      held.set(key, { looked, tookMs: now() - at.getTime() });
      for (const old of held.keys()) if (held.size > most) held.delete(old);
      return looked;
    };
    const doing = work().finally(() => underWay.delete(key));
    underWay.set(key, doing);
    return doing;
  };
  return async (key: string, look: () => Promise<T>): Promise<Looked<T>> => {
    const known = held.get(key);
    const age = known === undefined ? Infinity : now() - known.looked.at.getTime();
    if (known === undefined || age > heldMs) return lookNow(key, look);
    // Where that fails, the next look after the last of these minutes says why.
    if (age > Math.max(newFor.ms, newFor.looks * known.tookMs)) lookNow(key, look).catch(() => {});
    return known.looked;
  };
}
