/** What judging took, in a line. */
import type { JudgeCounts } from './ask-open.ts';

/** Prices are small; money is shown with as many digits as make a call visible. */
export const moneyText = (money: number): string => (money === 0 ? '0' : money.toFixed(money < 1 ? 4 : 2));

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
