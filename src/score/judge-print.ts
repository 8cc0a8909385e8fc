/** What judging took, in a line. */
import { moneyText } from '../collect/price.ts';
import type { JudgeCounts } from './ask-open.ts';

export function judgedLine({
  calls,
  promptTokens,
  completionTokens,
  money,
  known,
  asked,
  withheld,
}: JudgeCounts): string {
  const kept = `${known} ${known === 1 ? 'verdict was' : 'verdicts were'} known already`;
  const hidden =
    withheld === 0
      ? ''
      : ` ${withheld} ${withheld === 1 ? 'was' : 'were'} not shown to it: what is internal stays inside.`;
  if (calls === 0 && asked === 0) return `The judge was not asked; ${kept}.${hidden}`;
  const tokens = `${promptTokens} + ${completionTokens} tokens`;
  return `The judge was asked for ${asked} ${asked === 1 ? 'verdict' : 'verdicts'} in ${calls} ${calls === 1 ? 'call' : 'calls'} (${tokens}, cost ${moneyText(money)}); ${kept}.${hidden}`;
}
