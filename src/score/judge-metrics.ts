/** What asking judges took, as Prometheus text. */
import type { JudgingOf, Spent } from '../store/judging.ts';

const counters = [
  ['pawl_judge_calls_total', 'calls', 'Calls to the judge.'],
  ['pawl_judge_prompt_tokens_total', 'promptTokens', 'Tokens that the judge read.'],
  ['pawl_judge_completion_tokens_total', 'completionTokens', 'Tokens that the judge wrote.'],
  ['pawl_judge_money_total', 'money', 'What the judge cost, in the currency of the prices.'],
] as const;

const quoted = (text: string): string => JSON.stringify(text).replace(/\\u[0-9a-f]{4}/g, '?');

export function judgeMetrics(judging: readonly (JudgingOf & Spent)[]): string {
  if (judging.length === 0) return '';
  return counters
    .map(([name, field, help]) => {
      const lines = judging.map(
        ({ agent, upstream, model, [field]: value }) =>
          `${name}{agent=${quoted(agent)},upstream=${quoted(upstream)},model=${quoted(model)}} ${value}`,
      );
      return `# HELP ${name} ${help}\n# TYPE ${name} counter\n${lines.join('\n')}\n`;
    })
    .join('');
}
