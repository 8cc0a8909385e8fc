/**
 * Asks the candidate of a rollout in shadow what a user has just asked, once the user has their answer, and has both answers
 * compared (deploy/shadow.ts). Nobody waits for it, nothing fails with it, nobody acts on it: a tool call that the candidate
 * wants is compared and left. What it said is recorded as a turn of its own with origin `shadow`, which nothing is learned from.
 */
import type { IncomingHttpHeaders } from 'node:http';
import type { Logger } from 'pino';
import { assemble } from '../collect/assemble.ts';
import type { Exchange } from '../collect/exchange.ts';
import type { Recorder } from '../collect/recorder.ts';
import { isTooIntricate } from '../collect/untrusted.ts';
import { uuidv7 } from '../collect/uuid.ts';
import type { Release } from '../deploy/release.ts';
import type { Shadowing } from '../deploy/routes.ts';
import { compareAnswers } from '../deploy/shadow.ts';
import { isFlagOn } from '../store/flags.ts';
import type { Store } from '../store/postgres.ts';
import { countComparisons, insertComparison, wentElsewhere } from '../store/shadows.ts';
import { fetchAnswer } from './ask-again.ts';
import { goesOn } from './beginnings.ts';
import { mostBytes, plainBody, runsTools, usageOf } from './explore.ts';
import type { Metrics } from './metrics.ts';
import { releasedBody } from './released-body.ts';
import type { Upstreams } from './upstreams.ts';

export type Shadower = {
  /** `exchange`: one that has just been recorded. Returns at once and never throws. */
  offer(exchange: Exchange, shadow: Shadowing, sent: Sent): void;
  close(): Promise<void>;
};
type Body = Readonly<Record<string, unknown>>;
type Server = ReturnType<Upstreams['get']>;
type Sent = { readonly path: string; readonly headers: IncomingHttpHeaders };

export type ShadowerParts = {
  readonly upstreams: Upstreams;
  readonly recorder: Pick<Recorder, 'record'>;
  readonly metrics: Metrics;
  readonly log: Logger;
  /** null while the database is away: then nothing is shadowed, because nothing could be kept of it. */
  readonly store: () => Store | null;
  /** What users' requests take of the gateway now. */
  readonly load: () => { readonly isFull: boolean };
};

const mostInFlight = 8;
const rememberedConversations = 10_000;

export function createShadower(parts: ShadowerParts): Shadower {
  const { metrics, log } = parts;
  const closing = new AbortController();
  const calls = new Set<Promise<void>>();
  /** Conversations in which the candidate went another way, as far as this process knows; the oldest are forgotten. */
  const elsewhere = new Set<string>();
  /** Of each rollout, what this process asks now and is not counted yet. */
  const uncounted = new Map<string, number>();
  let minute = 0;
  let asked = 0;

  const conversation = ({ agent, trajectory }: Exchange, { rollout }: Shadowing): string | null =>
    trajectory === null ? null : JSON.stringify([rollout, agent, trajectory]);

  function mayAsk(exchange: Exchange, shadow: Shadowing): boolean {
    const { origin, endpoint, status, httpStatus, requestBody, responseTruncated } = exchange;
    if (origin !== shadow.origin || endpoint !== 'chat' || status !== 'ok' || httpStatus !== 200) return false;
    if (responseTruncated || requestBody.length > mostBytes) return false;
    const followed = conversation(exchange, shadow);
    if (followed !== null && elsewhere.has(followed)) return false;
    const now = Math.floor(Date.now() / 60_000);
    if (now !== minute) [minute, asked] = [now, 0];
    return asked < shadow.settings.perMinute && calls.size < mostInFlight && !parts.load().isFull;
  }

  const answerAt = (sent: Sent, most: number) => (request: Body, candidate: Release, server: Server) =>
    fetchAnswer(
      server,
      { ...sent, body: plainBody(releasedBody(request, candidate, server, 'chat'), most) },
      closing.signal,
    );

  async function ask(exchange: Exchange, shadow: Shadowing, sent: Sent): Promise<void> {
    const { rollout } = shadow;
    const before = uncounted.get(rollout) ?? 0;
    uncounted.set(rollout, before + 1);
    try {
      await askAfter(before, exchange, shadow, sent);
    } finally {
      const left = (uncounted.get(rollout) ?? 1) - 1;
      if (left > 0) uncounted.set(rollout, left);
      else uncounted.delete(rollout);
    }
  }

  /** `underWay`: as many calls were begun before this one and are not counted yet. */
  async function askAfter(underWay: number, exchange: Exchange, shadow: Shadowing, sent: Sent): Promise<void> {
    const { rollout, candidate, settings } = shadow;
    const store = parts.store();
    if (store === null || isTooIntricate(exchange.requestBody, exchange.responseChunks)) return;
    const before = assemble(exchange);
    const answer = before.choices[0]?.message;
    if (answer === undefined || runsTools(before.request)) return;
    if (!(await isFlagOn(store, exchange.agent, 'shadow'))) return;
    if ((await countComparisons(store, rollout)) + underWay >= settings.most) return;
    if (await leftBefore(store, exchange, shadow, before.request)) return;
    const upstream = parts.upstreams.from(candidate.upstream)[0];
    const answerOf = answerAt(sent, settings.maxTokens);
    const startedAt = Date.now();
    const began = performance.now();
    const got =
      upstream === undefined
        ? null
        : await answerOf(before.request, candidate, parts.upstreams.get(upstream)).catch(() => null);
    if (closing.signal.aborted) return;
    const candidateMs = Math.round(performance.now() - began);
    const id = uuidv7(startedAt);
    const recorded: Exchange = {
      ...{ id, trajectory: `shadow-${exchange.id}`, agent: exchange.agent, user: exchange.user, origin: 'shadow' },
      ...{ keys: [], endpoint: 'chat', startedAt, firstTokenMs: null, latencyMs: candidateMs },
      ...{ upstream: candidate.upstream, release: candidate.name, requestedModel: exchange.requestedModel },
      ...(got === null
        ? { status: 'error', httpStatus: 502, error: 'The shadow call gave no answer.' }
        : { status: 'ok', httpStatus: 200, error: null }),
      ...{ attempts: 1, stream: false, requestBody: exchange.requestBody },
      ...{ responseChunks: got === null ? [] : [got.bytes], responseTruncated: false },
    };
    parts.recorder.record(recorded);
    const after = got === null ? null : assemble(recorded).choices[0]?.message;
    const compared = after == null ? null : compareAnswers(answer, after);
    metrics.shadowAsked(exchange.agent, compared === null ? 'failed' : compared.agreed ? 'agreed' : 'differed');
    const followed = conversation(exchange, shadow);
    if (followed !== null && compared?.agreed !== true) leave(followed);
    await insertComparison(store, {
      ...{ id, parent: exchange.id, rollout, agent: exchange.agent, at: startedAt, failed: compared === null },
      ...{ agreed: compared?.agreed ?? null, similarity: compared?.similarity ?? null },
      ...{ baselineMs: exchange.latencyMs, candidateMs },
      baselineTokens: before.completionTokens,
      candidateTokens: got === null ? null : (usageOf(got.json)?.completionTokens ?? null),
    });
  }

  /** It may have gone on from another gateway, or from before a restart. */
  async function leftBefore(store: Store, exchange: Exchange, shadow: Shadowing, request: Body): Promise<boolean> {
    const { agent, trajectory } = exchange;
    const followed = conversation(exchange, shadow);
    if (followed === null || !goesOn(request)) return false;
    const left = await wentElsewhere(store, { rollout: shadow.rollout, agent, trajectory: trajectory! }, Date.now());
    if (left) leave(followed);
    return left;
  }

  function leave(followed: string): void {
    if (elsewhere.size >= rememberedConversations) elsewhere.delete(elsewhere.values().next().value!);
    elsewhere.add(followed);
  }

  return {
    offer(exchange, shadow, sent) {
      if (closing.signal.aborted || !mayAsk(exchange, shadow)) return;
      asked++;
      const call = ask(exchange, shadow, sent)
        .catch((error: unknown) => log.warn({ err: error }, 'shadow: a comparison was not made'))
        .finally(() => calls.delete(call));
      calls.add(call);
    },
    async close() {
      closing.abort();
      await Promise.all(calls);
    },
  };
}
