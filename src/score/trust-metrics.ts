/** The latest check of every agent's reward as Prometheus reads it. What could not be measured has no line. */
import { z } from 'zod';
import type { RewardCheckRow } from '../store/judged.ts';

const agreement = z.object({
  part: z.string().nullable(),
  labels: z.number(),
  spearman: z.number().nullable(),
  state: z.enum(['ok', 'alarm', 'unmeasured']),
});
/** What is kept of a check, as far as it is read again. */
export const keptCheck = z.object({ total: agreement, parts: z.array(agreement) });

/** Names of agents and parts hold nothing that would need escaping; one that does is left out. */
const isPlain = (name: string): boolean => /^[\w.-]+$/.test(name);

export function trustMetrics(checks: readonly RewardCheckRow[]): string {
  const known = checks.flatMap(({ agent, result }) => {
    const { data } = keptCheck.safeParse(result);
    const all = data === undefined || !isPlain(agent) ? [] : [data.total, ...data.parts];
    return all
      .map((one) => ({ ...one, part: one.part ?? 'total', agent }))
      .filter(({ part, spearman, state }) => isPlain(part) && spearman !== null && state !== 'unmeasured');
  });
  if (known.length === 0) return '';
  const lines = (name: string, help: string, value: (one: (typeof known)[number]) => number) => [
    ...[`# HELP ${name} ${help}`, `# TYPE ${name} gauge`],
    ...known.map((one) => `${name}{agent="${one.agent}",part="${one.part}"} ${value(one)}`),
  ];
  return `${[
    ...lines('pawl_reward_agreement', 'Spearman correlation of the reward with labels', ({ spearman }) => spearman!),
    ...lines('pawl_reward_alarm', '1 where it is below 0.7', ({ state }) => (state === 'alarm' ? 1 : 0)),
    ...lines('pawl_reward_labels', 'Labelled conversations it rests on', ({ labels }) => labels),
  ].join('\n')}\n`;
}
