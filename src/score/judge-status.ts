/** Who judges an agent's conversations, and what all judging took lately. */
import { listJudging, type Judging as Spending } from '../store/judging.ts';
import type { Store } from '../store/postgres.ts';
import { summariseVerdicts, type VerdictSummary } from '../store/verdicts.ts';
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
  /** Money. */
  readonly budget: { readonly run: number | null; readonly day: number | null };
  readonly moneyToday: number;
  readonly spending: readonly Spending[];
};

export async function judgeStatus(store: Store, agents: readonly Judged[], days: number): Promise<JudgeStatus> {
  const spending = await listJudging(store, days);
  const today = new Date().toISOString().slice(0, 10);
  const { run, day } = agents.find(({ judging }) => judging !== undefined)?.judging?.budget ?? {};
  return {
    ...(await summariseVerdicts(store)),
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
