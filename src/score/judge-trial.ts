/** Asks a judge about a small conversation with one right mark, to see that it answers as it must. Costs one call, every time. */
import { randomUUID } from 'node:crypto';
import type { Judge, Verdict } from './ask.ts';
import { defaultCriteria, judgeAnswer, judgeTask } from './judge.ts';

const limitMs = 120_000;

export function tryJudge(judge: Judge, agent: string): Promise<Verdict> {
  const day = new Date().toISOString().slice(0, 10);
  const ask = judge.about({ agent, trajectory: 'pawl-judge-trial', day, signal: AbortSignal.timeout(limitMs) });
  const material = [
    { name: 'message 1 user', text: 'What is 7 times 8?' },
    { name: 'message 2 assistant', text: '7 times 8 is 56.' },
  ];
  // Never the same twice, so that it is really asked.
  return ask({ prompt: 'trial', content: [randomUUID()], calls: 1 }, async (call) => {
    const { score, reasoning } = await call({ task: judgeTask(defaultCriteria), material, answer: judgeAnswer });
    return { value: score, reason: reasoning };
  });
}
