/**
 * The judge of one scoring run: asks the upstream that the settings name, keeps what it said, and counts what that cost. A verdict
 * that is kept is not asked for again. One that could not be had is a failure of that part; what is wrong with the verdict itself
 * (prose, 1.7, an obeyed instruction) is remembered, and asked about again after growing pauses, so that a conversation that
 * breaks its judge is not paid for every hour. A judge that does not answer ten times in a row is not asked again in this run.
 */
import { createHash, randomInt } from 'node:crypto';
import { z } from 'zod';
import { moneyOf } from '../collect/price.ts';
import { redact } from '../collect/redact/redact.ts';
import { ConfigError } from '../errors.ts';
import { addJudging, type Spent, spentToday } from '../store/judging.ts';
import type { Store } from '../store/postgres.ts';
import { internalReleases } from '../store/releases.ts';
import { type KeptVerdict, readVerdict, saveVerdict } from '../store/verdicts.ts';
import type { Ask, Asked, AskedAbout, Call, Judge, Question, Verdict } from './ask.ts';
import { readAnswer, withControl } from './ask-answer.ts';
import { fitBlocks, marksFor, promptOf } from './ask-prompt.ts';
import { JudgeAway, type JudgeServer, openJudgeServer, type Usage } from './ask-server.ts';
import type { JudgeSettings, Judging } from './judge-settings.ts';

export type JudgeCounts = Spent & {
  /** Verdicts that were kept already. */
  readonly known: number;
  /** Verdicts asked for. */
  readonly asked: number;
  /** Not asked for, because what the judge would be shown must not leave. */
  readonly withheld: number;
};

export type OpenJudge = Judge & { counts(): JudgeCounts };

export type Judged = { readonly name: string; readonly judging?: Judging | undefined };

export type OpenJudgeOptions = {
  readonly now?: () => number;
  readonly pauseMs?: number;
};

const awayInARow = 10;
/** A verdict that cannot be used is asked for again at once, this often at most. */
const invalidAttempts = 3;
const reasonCharacters = 500;
/** Of a prompt of ours, and of an answer, as far as can be told before. */
const expected = { prompt: 500, answer: 300, charactersPerToken: 4 };

/** Undefined where the settings name no judge. */
export function openJudge(
  store: Store,
  { name, judging: settings }: Judged,
  options: OpenJudgeOptions = {},
): OpenJudge | undefined {
  if (settings === undefined) return undefined;
  const { now = Date.now, pauseMs } = options;
  const counts = { calls: 0, promptTokens: 0, completionTokens: 0, money: 0, known: 0, asked: 0, withheld: 0 };
  const servers = new Map<string, JudgeServer>();
  const enter = turnstile(settings.concurrency);
  const trouble = { inARow: 0, lasting: null as string | null };
  const budget = createBudget(store, settings.budget);

  const chosen = ({ using }: Asked) => {
    const upstream = using?.upstream ?? settings.upstream;
    const { upstreams } = settings;
    const server = upstreams[upstream];
    if (server === undefined)
      throw new ConfigError(
        `There is no upstream ${upstream} to judge; there is ${Object.keys(upstreams).join(', ')}.`,
      );
    const model = using?.model ?? settings.model;
    return {
      ...{ upstream, model, price: server.price, isInside: server.inside === true },
      embeddingModel: settings.embeddingModel,
      server() {
        const which = `${upstream} ${model}`;
        const { timeoutSeconds, attempts, maxTokens } = settings;
        const { baseUrl, key } = server;
        const open =
          servers.get(which) ??
          openJudgeServer({
            ...{ baseUrl, key, model, timeoutSeconds, attempts, maxTokens },
            ...(pauseMs === undefined ? {} : { pauseMs }),
          });
        servers.set(which, open);
        return open;
      },
    };
  };

  type Chosen = ReturnType<typeof chosen>;
  /** One request, within what is allowed; counted whatever comes of it. */
  const request = async <T extends { readonly usage: Usage | null }>(
    { upstream, model, price }: Chosen,
    tokens: number,
    signal: AbortSignal,
    send: () => Promise<T>,
  ): Promise<T> => {
    if (trouble.lasting !== null) throw new Error(trouble.lasting);
    const leave = await enter(signal);
    const likely = { promptTokens: tokens, completionTokens: expected.answer };
    const release = await budget
      .take(moneyOf(likely, price), () => counts.money)
      .catch((error: unknown) => {
        leave();
        throw error;
      });
    try {
      if (trouble.lasting !== null) throw new Error(trouble.lasting);
      const result = await send();
      trouble.inARow = 0;
      // Who does not count is not free: a budget would never end.
      const usage = result.usage ?? likely;
      const spent = { calls: 1, ...usage, money: moneyOf(usage, price) };
      for (const name of ['calls', 'promptTokens', 'completionTokens', 'money'] as const) counts[name] += spent[name];
      budget.spent(await addJudging(store, { agent: name, upstream, model }, spent));
      return result;
    } catch (error) {
      if (error instanceof JudgeAway && (error.lasting || ++trouble.inARow >= awayInARow))
        trouble.lasting = error.message;
      throw error;
    } finally {
      release();
      leave();
    }
  };

  const callOf = (who: Chosen, of: AskedAbout): Call => {
    const { signal } = of;
    /** `content` should have said it all; what is sent decides. */
    const mayBeShown = async (words: readonly string[]) => {
      const why = await withheldFrom(who, words, of);
      if (why !== null) throw new Withheld(why);
    };
    const call = async <Shape extends z.ZodRawShape>({ task, material: given, answer }: Question<Shape>) => {
      await mayBeShown(given.flatMap((block) => [block.name, block.text]));
      const material = fitBlocks(given, settings.maxCharacters);
      const { $schema: _, ...schema } = z.toJSONSchema(withControl(answer));
      for (let attempt = 1; ; attempt++) {
        const marks = marksFor(material, randomInt);
        const messages = promptOf({ task, material }, JSON.stringify(schema), marks);
        const tokens = tokensOf(messages.map(({ content }) => content));
        const temperature = attempt === 1 ? 0 : 0.7;
        const said = await request(who, tokens, signal, () =>
          who.server().chat(messages, { schema, temperature, signal }),
        );
        const read = readAnswer(said, answer, marks);
        if (read.kind === 'answer') return read.value;
        if (read.obeyed || said.isCut || attempt >= invalidAttempts) throw new NoVerdict(read.why);
      }
    };
    const embed = async (texts: readonly string[]) => {
      const model = who.embeddingModel;
      if (model === undefined) throw new ConfigError('judge.embeddingModel is not set.');
      await mayBeShown(texts);
      const made = { ...who, model };
      return (await request(made, tokensOf(texts), signal, () => who.server().embed(model, texts, signal))).vectors;
    };
    return Object.assign(call, { embed });
  };

  let internal: Promise<Set<string>> | undefined;
  /** Why this judge must not see this; null: it may. */
  const withheldFrom = async (
    { upstream, isInside }: Chosen,
    words: readonly string[],
    { agent, releases = [] }: AskedAbout,
  ): Promise<string | null> => {
    if (isInside) return null;
    const elsewhere = `upstream ${upstream}, which is not known as part of the deployment (\`inside: true\`)`;
    internal ??= internalReleases(store, agent);
    const known = await internal;
    const release = releases.find((one) => known.has(one));
    if (release !== undefined) return `the model of ${release} is internal, and the judge is at ${elsewhere}`;
    if (settings.isConfidential?.(words)) return `it holds what is confidential, and the judge is at ${elsewhere}`;
    return null;
  };

  /** The verdict that is kept, if it is one; otherwise under what it will be. */
  const lookUp = async (asked: Asked) => {
    const who = chosen(asked);
    const embeddingModel = asked.embeds === true ? who.embeddingModel : null;
    const key = createHash('sha256')
      .update(JSON.stringify([asked.prompt, who.model, embeddingModel, ...asked.content]))
      .digest('hex');
    return { who, key, lacks: embeddingModel === undefined, kept: await readVerdict(store, key) };
  };
  const isPaused = ({ failures, at }: KeptVerdict): boolean => failures > 1 && now() < at + pauseAfter(failures);

  const about = (of: AskedAbout): Ask => {
    const ask = async (asked: Asked, decide: (call: Call) => Promise<Verdict>): Promise<Verdict> => {
      const { who, key, lacks, kept } = await lookUp(asked);
      const withheld = (reason: string): Verdict => {
        counts.withheld++;
        return { value: null, reason };
      };
      const why = await withheldFrom(who, asked.content, of);
      if (why !== null) return withheld(why);
      if (lacks) return { value: null, reason: 'judge.embeddingModel is not set' };
      if (kept !== null && kept.failures === 0) {
        counts.known++;
        return verdictOf(kept);
      }
      if (kept !== null && isPaused(kept))
        throw new Error(`${kept.reason}; asked ${kept.failures} times, and again after a pause`);
      counts.asked++;
      const { trajectory, day } = of;
      const row = { key, agent: of.agent, trajectory, day, prompt: asked.prompt.slice(0, 64), model: who.model };
      try {
        const verdict = verdictOf(redact(await decide(callOf(who, of)), {}));
        await saveVerdict(store, row, verdict);
        return verdict;
      } catch (error) {
        if (error instanceof Withheld) return withheld(error.message);
        if (error instanceof NoVerdict)
          await saveVerdict(store, row, { value: null, reason: redact(error.message, {}), failed: true });
        throw error;
      }
    };
    const cost = async (asked: Asked) => {
      const { who, lacks, kept } = await lookUp(asked);
      if ((await withheldFrom(who, asked.content, of)) !== null) return { calls: 0, money: 0 };
      if (lacks || (kept !== null && (kept.failures === 0 || isPaused(kept)))) return { calls: 0, money: 0 };
      const { calls } = asked;
      const usage = {
        promptTokens: calls * (expected.prompt + tokensOf(asked.content)),
        completionTokens: calls * expected.answer,
      };
      return { calls, money: who.price === undefined ? null : moneyOf(usage, who.price) };
    };
    return Object.assign(ask, { cost });
  };

  return { about, counts: () => ({ ...counts }) };
}

/** The judge answered, and not so that it could be used. */
class NoVerdict extends Error {}

/** What would be sent must not leave. */
class Withheld extends Error {}

const verdictOf = ({ value, reason, details }: Verdict | KeptVerdict): Verdict => ({
  value,
  reason: reason.slice(0, reasonCharacters),
  ...(details === undefined
    ? {}
    : { details: details.map((one) => ({ ...one, reason: one.reason.slice(0, reasonCharacters) })) }),
});

/** After the second time half an hour, then an hour …, a day at most; the first time the next run asks again. */
const pauseAfter = (failures: number): number => Math.min(86_400_000, 1_800_000 * 2 ** Math.min(failures - 2, 10));

const tokensOf = (texts: readonly string[]): number =>
  Math.ceil(texts.reduce((sum, { length }) => sum + length, 0) / expected.charactersPerToken);

/** Calls in flight count with what they are expected to cost, so that many at once do not go over it together. */
function createBudget(store: Store, { run, day }: JudgeSettings['budget']) {
  let today: number | null = null;
  let reserved = 0;
  return {
    async take(money: number, spentInRun: () => number): Promise<() => void> {
      if (day !== undefined) today ??= await spentToday(store);
      if (day !== undefined && today! + reserved + money > day)
        throw new Error(`the judge’s budget of ${day} for a day is spent`);
      if (run !== undefined && spentInRun() + reserved + money > run)
        throw new Error(`the judge’s budget of ${run} for one run is spent`);
      reserved += money;
      return () => {
        reserved -= money;
      };
    },
    spent(known: number): void {
      today = known;
    },
  };
}

/** Lets so many in at once; the others wait in line. */
function turnstile(most: number): (signal: AbortSignal) => Promise<() => void> {
  let inside = 0;
  const waiting: (() => void)[] = [];
  const leave = () => {
    inside--;
    waiting.shift()?.();
  };
  return async (signal) => {
    while (inside >= most) await new Promise<void>((resolve) => waiting.push(resolve));
    inside++;
    if (!signal.aborted) return leave;
    leave();
    throw signal.reason;
  };
}
