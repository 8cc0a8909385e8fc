/**
 * Cuts streamed text at the first stop string, as OpenAI's `stop` asks: what comes out never contains one, not even the
 * beginning of one that is completed later. Text that cannot be the beginning of a stop string comes out at once.
 */
export type StopText = {
  push(text: string): string;
  end(): string;
  readonly stopped: boolean;
};

export function createStopText(stops: readonly string[]): StopText {
  let held = '';
  let stopped = false;
  return {
    push(text) {
      if (stopped) return '';
      held += text;
      const hits = stops.map((stop) => held.indexOf(stop)).filter((at) => at !== -1);
      if (hits.length > 0) {
        stopped = true;
        return held.slice(0, Math.min(...hits));
      }
      let keep = 0;
      for (const stop of stops) {
        for (let n = Math.min(stop.length - 1, held.length); n > keep; n--)
          if (held.endsWith(stop.slice(0, n))) keep = n;
      }
      const out = held.slice(0, held.length - keep);
      held = held.slice(held.length - keep);
      return out;
    },
    end() {
      const rest = stopped ? '' : held;
      held = '';
      return rest;
    },
    get stopped() {
      return stopped;
    },
  };
}
