/**
 * Whether, how and for how much a request is explored: asked again of the release that answered it, with other sampling
 * settings, so that there are several answers to one prompt to choose between when the model is trained. Pure; explorer.ts acts.
 *
 * What could not become training data is not explored: it would cost money for nothing. Nor is a request whose tools the server
 * itself runs, because asking again would run them again. Tools that the agent runs are no trouble: the call is recorded as an
 * answer, and nobody acts on it.
 */
import { mayTrain, type Training } from '../collect/own-traffic.ts';
import { moneyOf, type Tokens } from '../collect/price.ts';
import type { Consent, Origin } from '../collect/trajectory.ts';
import type { Endpoint, TurnStatus } from '../collect/turn.ts';
import type { ExploreSettings } from './explore-settings.ts';

/** A request that has its answer. */
export type Answered = {
  readonly origin: Origin;
  readonly endpoint: Endpoint;
  readonly user: string | null;
  readonly status: TurnStatus;
  readonly httpStatus: number;
  /** Of the request, as it was sent to the upstream. */
  readonly bytes: number;
};

/** What this gateway is doing at the moment, as far as it decides. */
export type Present = {
  /** Users' requests in flight. */
  readonly requests: number;
  /** Memory for requests or for recording runs short. */
  readonly isFull: boolean;
  /** Of this agent: further answers being waited for, and asked for in this minute. */
  readonly inFlight: number;
  readonly thisMinute: number;
  /** Its upstream failed to give a further answer a short while ago. */
  readonly isPaused: boolean;
};

export type Sampling = { readonly temperature: number; readonly topP: number | null };

/** Why a request that was drawn is not explored after all. */
export const refusals = [
  'busy',
  'in-flight',
  'per-minute',
  'per-hour',
  'money',
  'paused',
  'consent',
  'tools',
  'off',
  'database',
] as const;
export type Refusal = (typeof refusals)[number];

export type Decision =
  | { readonly kind: 'explore'; readonly calls: readonly Sampling[] }
  /** Not one to explore, or not drawn. */
  | { readonly kind: 'pass' }
  | { readonly kind: 'refused'; readonly reason: Refusal };

/** A longer prompt is dear, and reading it again would hold up others. */
export const mostBytes = 256 * 1024;

const pass: Decision = { kind: 'pass' };
const refused = (reason: Refusal): Decision => ({ kind: 'refused', reason });

export function shouldExplore(
  answered: Answered,
  settings: ExploreSettings,
  on: Training,
  present: Present,
  random: () => number,
): Decision {
  if (settings.share === 0 || !isExplorable(answered, on) || random() >= settings.share) return pass;
  if (present.requests >= settings.whileBelow || present.isFull) return refused('busy');
  if (present.isPaused) return refused('paused');
  if (present.inFlight >= settings.inFlight) return refused('in-flight');
  if (present.thisMinute + settings.temperatures.length > settings.perMinute) return refused('per-minute');
  return { kind: 'explore', calls: samplings(settings, random) };
}

/** Whether its conversation could be learned from, as far as the gateway can tell; what its user says is asked later. */
function isExplorable({ origin, endpoint, user, status, httpStatus, bytes }: Answered, on: Training): boolean {
  const consent: Consent = user === null ? 'unknown' : 'given';
  return (
    endpoint === 'chat' &&
    status === 'ok' &&
    httpStatus === 200 &&
    bytes <= mostBytes &&
    mayTrain({ origin, consent }, on)
  );
}

const samplings = ({ temperatures, topP }: ExploreSettings, random: () => number): Sampling[] =>
  temperatures.map((temperature) => ({ temperature, topP: topP[Math.floor(random() * topP.length)] ?? null }));

type Body = Readonly<Record<string, unknown>>;

/** Fields that one plain answer does not need, or that would tie it to the first one. */
const left = new Set([
  ...['stream', 'stream_options', 'n', 'seed', 'prediction', 'store'],
  ...['logprobs', 'top_logprobs', 'prompt_logprobs', 'return_token_ids'], // exact tokens of siblings are not kept
]);

/** The request with other sampling settings: one answer, not streamed. */
export const exploringBody = (body: Body, { temperature, topP }: Sampling, maxTokens: number): Body => ({
  ...plainBody(body, maxTokens),
  temperature,
  ...(topP === null ? {} : { top_p: topP }),
});

/** The request for one answer that is not streamed, of so many tokens at most. */
export function plainBody(body: Body, maxTokens: number): Body {
  const kept = Object.fromEntries(Object.entries(body).filter(([name]) => !left.has(name)));
  const limit = 'max_completion_tokens' in body ? 'max_completion_tokens' : 'max_tokens';
  return { ...kept, [limit]: tokenLimit(body, maxTokens) };
}

function tokenLimit(body: Body, most: number): number {
  const asked = body.max_completion_tokens ?? body.max_tokens;
  return typeof asked === 'number' && asked >= 1 ? Math.min(asked, most) : most;
}

/** Tools of kinds that the agent runs itself; any other kind may be the server's own, or somebody else's. */
const agentsOwn = new Set(['function', 'custom']);

export function runsTools({ tools, web_search_options: search, plugins }: Body): boolean {
  if (search !== undefined || plugins !== undefined) return true;
  return Array.isArray(tools) && tools.some((tool) => !agentsOwn.has((tool as { type?: string } | null)?.type ?? ''));
}

/** The most one call can cost, set aside before it is made: a token is at least one byte of what is sent. */
export const worstCost = (bytes: number, body: Body, { price, maxTokens }: ExploreSettings): number =>
  moneyOf({ promptTokens: bytes, completionTokens: tokenLimit(body, maxTokens) }, price);

/** What an answer says of its tokens; null: nothing one could charge by. */
export function usageOf(answer: unknown): Tokens | null {
  const usage = (answer as { usage?: { prompt_tokens?: unknown; completion_tokens?: unknown } } | null)?.usage;
  const [promptTokens, completionTokens] = [usage?.prompt_tokens, usage?.completion_tokens];
  const isCount = (value: unknown): value is number => typeof value === 'number' && value >= 0 && value < 1e9;
  return isCount(promptTokens) && isCount(completionTokens) ? { promptTokens, completionTokens } : null;
}
