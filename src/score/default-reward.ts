/**
 * The reward when an agent's file names none (S1):
 *
 *     0.30 judge + 0.25 faithfulness + 0.20 context recall + 0.20 feedback − min(0.05, (s − 10) / 100) above s = 10 seconds
 *
 * clamped to 0–1. The last is the penalty's 0.05 share: it can be lost and never earned, so the best there is is 0.95. What cannot
 * be measured (no judge configured, nothing retrieved, no vote; a judge is not asked where the user has spoken) leaves its place
 * to the others, which then share 0.95 (weighted.ts).
 */
import { contextRecall } from './context-recall.ts';
import { faithfulness } from './faithfulness.ts';
import { feedback } from './feedback.ts';
import { judge } from './judge.ts';
import { latency } from './latency.ts';
import { penalty, weighted } from './weighted.ts';

export const defaultReward = weighted({
  judge: [0.3, judge()],
  faithfulness: [0.25, faithfulness()],
  context_recall: [0.2, contextRecall()],
  feedback: [0.2, feedback()],
  latency: penalty(0.05, latency({ target: 10, worst: 15 })),
});
