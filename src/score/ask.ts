/**
 * How a scorer asks a model. The runtime hands it `ask`, bound to one conversation; where no judge is configured there is none,
 * and the scorer has measured nothing. A verdict is made by one or more calls and kept under what it was made from: the same
 * content, prompt and model are never asked about twice. What a call is shown of the conversation is material, never
 * instructions (ask-prompt.ts). A call that cannot be answered throws, and the part has failed; it is no 0.
 */
import type { z } from 'zod';
import type { Cost, Scorer, ScorerContext } from './scorer.ts';

/** A piece of foreign text. The name says what it is; it may be foreign too. */
export type Block = { readonly name: string; readonly text: string };

export type Question<Shape extends z.ZodRawShape> = {
  /** What is to be done with the material, in our words. */
  readonly task: string;
  readonly material: readonly Block[];
  /** What the answer must be; a schema-constrained server can say nothing else. */
  readonly answer: z.ZodObject<Shape>;
};

export type Call = {
  <Shape extends z.ZodRawShape>(question: Question<Shape>): Promise<z.output<z.ZodObject<Shape>>>;
  /** One vector per text, from the judge's embedding model. */
  embed(texts: readonly string[]): Promise<number[][]>;
};

export type Verdict = {
  /** 0–1; null: it cannot be told. */
  readonly value: number | null;
  readonly reason: string;
  /** What it was made up of, where it has parts: by the part's name. */
  readonly details?: readonly { readonly name: string; readonly value: number; readonly reason: string }[];
};

export type JudgeChoice = {
  /** Name of an upstream; default: the agent's, or the installation's. */
  readonly upstream?: string;
  readonly model?: string;
};

export type Asked = {
  /** Name and version of what is asked; another prompt, another verdict. */
  readonly prompt: string;
  /** Everything the verdict depends on. */
  readonly content: readonly string[];
  /** Calls it takes, as far as can be told before: for what a run would cost. */
  readonly calls: number;
  readonly using?: JudgeChoice;
  /** Whether it needs the embedding model. */
  readonly embeds?: boolean;
};

export type Ask = {
  (asked: Asked, decide: (call: Call) => Promise<Verdict>): Promise<Verdict>;
  /** What it would take now: nothing where the verdict is kept. Asks nobody. */
  cost(asked: Asked): Promise<Cost>;
};

/** The conversation a verdict is about: it is kept as long as that. */
export type AskedAbout = {
  readonly agent: string;
  readonly trajectory: string;
  /** Of the trajectory's partition. */
  readonly day: string;
  /** Releases that answered in it. */
  readonly releases?: readonly string[];
  readonly signal: AbortSignal;
};

export type Judge = { about(about: AskedAbout): Ask };

/** What a scorer that asks would take: it is let go up to its questions, and nobody is asked them. */
const costOf =
  <Given>(work: (given: Given, context: ScorerContext) => unknown) =>
  async (given: Given, context: ScorerContext): Promise<Cost> => {
    const { ask } = context;
    const total: { calls: number; money: number | null } = { calls: 0, money: 0 };
    if (ask === undefined) return total;
    const counting = async (asked: Asked) => {
      const { calls, money } = await ask.cost(asked);
      total.calls += calls;
      total.money = total.money === null || money === null ? null : total.money + money;
      return { value: null, reason: 'not asked' };
    };
    await work(given, { ...context, ask: Object.assign(counting, { cost: ask.cost }) });
    return total;
  };

/** Its time is that of its calls, which have limits of their own, and of waiting for its turn. */
export const askingScorer = (scorer: Pick<Scorer, 'name' | 'version' | 'score' | 'rank' | 'usesLabels'>): Scorer => ({
  ...scorer,
  timeoutSeconds: 900,
  inProcess: true,
  cost: costOf(scorer.score),
  ...(scorer.rank && { rankCost: costOf(scorer.rank) }),
});

/** There is nobody to ask. */
export const noJudge = 'no judge is configured';
