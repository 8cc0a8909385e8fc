/**
 * How long the newest answers of each agent's serving release took to their first byte, so that a candidate is not taken for hung
 * where everybody takes long: an answer that is not streamed comes whole, when it is done. In this process only; an agent of which
 * nothing is known yet has the configured wait.
 */
const kept = 20;
const mostAgents = 10_000;

export type AnswerTimes = {
  took(agent: string, isStreamed: boolean, ms: number): void;
  /** How long a candidate's first byte is waited for; null where nobody else could answer. */
  patience(agent: string, isStreamed: boolean, configuredMs: number | null): number | null;
};

export function createAnswerTimes(): AnswerTimes {
  const newest = new Map<string, number[]>();
  const keyOf = (agent: string, isStreamed: boolean) => `${isStreamed ? 's' : 'w'}${agent}`;
  return {
    took(agent, isStreamed, ms) {
      const key = keyOf(agent, isStreamed);
      let times = newest.get(key);
      if (times === undefined) {
        if (newest.size >= mostAgents) newest.clear();
        times = [];
        newest.set(key, times);
      }
      times.push(ms);
      if (times.length > kept) times.shift();
    },
    patience: (agent, isStreamed, configuredMs) =>
      configuredMs === null
        ? null
        : Math.max(configuredMs, 2 * Math.max(0, ...(newest.get(keyOf(agent, isStreamed)) ?? []))),
  };
}
