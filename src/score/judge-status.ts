/** Who judges an agent's conversations, and what all judging took lately. */
import { listJudging, type Judging as Spending } from '../store/judging.ts';
import type { Store } from '../store/postgres.ts';
import { lookAtVerdicts, type VerdictSummary } from '../store/verdicts.ts';
import type { Judged } from './ask-open.ts';

export type JudgeStatus = VerdictSummary & {
  readonly agents: readonly {
    readonly agent: string;
    /** null: none is configured. */
    readonly judge: {
      readonly upstream: string;
      readonly model: string;
      readonly embeddingModel: string | null;
    } | null;
  }[];
  /** When verdicts were counted. */
  readonly countedAt: Date;
  /** Money. */
  readonly budget: { readonly run: number | null; readonly day: number | null };
  readonly moneyToday: number;
  readonly spending: readonly Spending[];
};

export async function judgeStatus(store: Store, agents: readonly Judged[], days: number): Promise<JudgeStatus> {
  const spending = await listJudging(store, days);
  const { value: verdicts, countedAt } = await lookAtVerdicts(store);
  const today = new Date().toISOString().slice(0, 10);
  const { run, day } = agents.find(({ judging }) => judging !== undefined)?.judging?.budget ?? {};
  return {
    ...verdicts,
    countedAt,
    agents: agents.map(({ name, judging }) => ({
      agent: name,
      judge: judging
        ? { upstream: judging.upstream, model: judging.model, embeddingModel: judging.embeddingModel ?? null }
        : null,
    })),
    budget: { run: run ?? null, day: day ?? null },
    moneyToday: spending.filter((one) => one.day === today).reduce((sum, { money }) => sum + money, 0),
    spending,
  };
}
