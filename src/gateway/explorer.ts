/**
 * Asks releases for the further answers that explore.ts decides on, once the user has theirs, and has them recorded as siblings
 * of the user's turn. Nobody waits for it and nothing fails with it: a call that cannot be made is counted and forgotten. One
 * group of answers is asked for one after the other, so that what is in flight is one call for each group; a gateway that gets
 * busy meanwhile leaves the rest.
 */
import type { IncomingHttpHeaders } from 'node:http';
import type { Logger } from 'pino';
import type { Exchange } from '../collect/exchange.ts';
import { mayTrain, type Training } from '../collect/own-traffic.ts';
import { hashedId } from '../collect/person.ts';
import { moneyOf, type Tokens } from '../collect/price.ts';
import type { Recorder } from '../collect/recorder.ts';
import type { Consent } from '../collect/trajectory.ts';
import { uuidv7 } from '../collect/uuid.ts';
import type { Config } from '../config.ts';
import { readConsent } from '../store/consents.ts';
import { returnAllowance, type Taken, takeAllowance } from '../store/exploration.ts';
import { isFlagOn } from '../store/flags.ts';
import type { Store } from '../store/postgres.ts';
import { type Asking, fetchAnswer } from './ask-again.ts';
import {
  exploringBody,
  type Present,
  type Refusal,
  runsTools,
  type Sampling,
  shouldExplore,
  usageOf,
  worstCost,
} from './explore.ts';
import type { ExploreSettings } from './explore-settings.ts';
import type { Metrics } from './metrics.ts';
import type { Upstreams } from './upstreams.ts';

/** How a request was sent to the upstream that answered it. */
export type Sent = { readonly path: string; readonly headers: IncomingHttpHeaders; readonly body: Uint8Array };

export type Explorer = {
  /** `exchange`: one that has just been recorded. Returns at once and never throws. */
  offer(exchange: Exchange, sent: Sent): void;
  /** Gives up what is being asked. */
  close(): Promise<void>;
};

/** What is kept of the exchange while further answers are asked for: not its bytes. */
type Known = Pick<Exchange, 'id' | 'startedAt' | 'agent' | 'user' | 'origin' | 'endpoint'> &
  Pick<Exchange, 'upstream' | 'release' | 'requestedModel'>;

export type ExplorerParts = {
  readonly config: Pick<Config, 'agents'>;
  readonly upstreams: Upstreams;
  readonly recorder: Pick<Recorder, 'record'>;
  readonly metrics: Metrics;
  readonly log: Logger;
  /** null while the database is away: then nothing is explored, because nobody could say what it may cost. */
  readonly store: () => Store | null;
  /** What user ids are hashed with. */
  readonly secret: string;
  /** What users' requests take of the gateway now. */
  readonly load: () => Pick<Present, 'requests' | 'isFull'>;
};

type Granted = { readonly store: Store; readonly taken: Taken };
type Explored = {
  readonly settings: ExploreSettings;
  readonly on: Training;
  inFlight: number;
  /** The minute that `asked` counts. */
  minute: number;
  asked: number;
  failures: number;
  pausedUntil: number;
};

const firstPauseMs = 60_000;
const longestPauseMs = 3_600_000;
const noRequest = Buffer.from('{}'); // a sibling's prompt is its parent's

export function createExplorer(parts: ExplorerParts): Explorer {
  const { metrics, log } = parts;
  const agents = new Map<string, Explored>();
  for (const { name, explore: settings, curate } of parts.config.agents)
    if (settings.share > 0)
      agents.set(name, { settings, on: curate.on, inFlight: 0, minute: 0, asked: 0, failures: 0, pausedUntil: 0 });
  const closing = new AbortController();
  const groups = new Set<Promise<void>>();

  function presentOf(agent: Explored, now: number): Present {
    const minute = Math.floor(now / 60_000);
    if (agent.minute !== minute) Object.assign(agent, { minute, asked: 0 });
    const { inFlight, asked: thisMinute, pausedUntil } = agent;
    return { ...parts.load(), inFlight, thisMinute, isPaused: now < pausedUntil };
  }

  /** What may be spent on these calls, or why they are not made. */
  async function allowed(known: Known, agent: Explored, calls: number, money: number): Promise<Granted | Refusal> {
    const store = parts.store();
    if (store === null) return 'database';
    const { perHour, moneyPerDay = null } = agent.settings;
    try {
      if (!(await isFlagOn(store, known.agent, 'exploration'))) return 'off';
      const consent = await consentOf(store, known, parts.secret);
      if (!mayTrain({ origin: known.origin, consent }, agent.on)) return 'consent';
      const taken = await takeAllowance(store, known.agent, { calls, money }, { perHour, moneyPerDay });
      return typeof taken === 'string' ? taken : { store, taken };
    } catch (error) {
      log.warn({ err: error }, 'explore: the database cannot say what may be asked');
      return 'database';
    }
  }

  /** The answers to one request, one after the other. */
  async function explore(known: Known, sent: Sent, agent: Explored, calls: readonly Sampling[]): Promise<void> {
    const { settings, minute } = agent;
    const body = JSON.parse(Buffer.from(sent.body).toString('utf8')) as Record<string, unknown>;
    const worst = worstCost(sent.body.length, body, settings);
    const granted = runsTools(body) ? 'tools' : await allowed(known, agent, calls.length, worst * calls.length);
    if (typeof granted === 'string') {
      metrics.explorationRefused(known.agent, granted);
      if (agent.minute === minute) agent.asked -= calls.length;
      return;
    }
    let asked = 0;
    let spent = 0;
    for (const sampling of calls) {
      if (closing.signal.aborted || parts.load().requests >= settings.whileBelow) break;
      asked++;
      metrics.explorationAsked(known.agent);
      const usage = await ask(known, { ...sent, body: exploringBody(body, sampling, settings.maxTokens) }, sampling);
      // What a call that failed has cost is not known, nor what one without numbers has: then the most it can be.
      spent += usage === null || usage === 'unknown' ? worst : moneyOf(usage, settings.price);
      if (noteResult(agent, usage !== null) || closing.signal.aborted) continue;
      log.warn({ agent: known.agent, release: known.release }, 'explore: a further answer failed; pausing');
      break;
    }
    metrics.explorationSpent(known.agent, spent);
    const { store, taken } = granted;
    const unused = { ...taken, calls: calls.length - asked, money: taken.money - spent };
    await returnAllowance(store, known.agent, unused).catch((error: unknown) =>
      log.warn({ err: error }, 'explore: what was not spent could not be given back'),
    );
  }

  /** One answer, recorded: what it says of its tokens; null: it failed. */
  async function ask(known: Known, sent: Asking, sampling: Sampling): Promise<Tokens | 'unknown' | null> {
    const startedAt = Date.now();
    const began = performance.now();
    const answer = await fetchAnswer(parts.upstreams.get(known.upstream), sent, closing.signal).catch(() => null);
    const { id: parent, agent, endpoint, upstream, release, requestedModel } = known;
    const isRecorded =
      answer !== null &&
      parts.recorder.record({
        ...{ id: uuidv7(startedAt), trajectory: null, agent, user: null, origin: 'exploration', keys: [], endpoint },
        ...{ startedAt, firstTokenMs: null, latencyMs: Math.round(performance.now() - began), upstream, release },
        ...{ requestedModel, status: 'ok', httpStatus: 200, error: null, attempts: 1, stream: false },
        ...{ requestBody: noRequest, responseChunks: [answer.bytes], responseTruncated: false },
        sibling: { parent, ...sampling },
      });
    if (isRecorded) metrics.explorationAnswered(agent);
    else metrics.explorationFailed(agent);
    return answer === null ? null : (usageOf(answer.json) ?? 'unknown');
  }

  return {
    offer(exchange, sent) {
      const agent = agents.get(exchange.agent);
      if (agent === undefined || closing.signal.aborted) return;
      const { settings, on } = agent;
      const present = presentOf(agent, Date.now());
      const decision = shouldExplore({ ...exchange, bytes: sent.body.length }, settings, on, present, Math.random);
      if (decision.kind === 'refused') metrics.explorationRefused(exchange.agent, decision.reason);
      if (decision.kind !== 'explore') return;
      agent.inFlight++;
      agent.asked += decision.calls.length;
      const { id, startedAt, agent: name, user, origin, endpoint, upstream, release, requestedModel } = exchange;
      const known = { id, startedAt, agent: name, user, origin, endpoint, upstream, release, requestedModel };
      const group = explore(known, sent, agent, decision.calls)
        .catch((error: unknown) => log.error({ err: error }, 'explore: failed in Pawl itself'))
        .finally(() => {
          agent.inFlight--;
          groups.delete(group);
        });
      groups.add(group);
    },
    async close() {
      closing.abort();
      await Promise.all(groups);
    },
  };
}

/** What the user says now about the time of the request. */
async function consentOf(store: Store, { agent, user, startedAt }: Known, secret: string): Promise<Consent> {
  const said = user === null ? null : await readConsent(store, agent, hashedId(user, secret));
  if (said === null) return 'unknown';
  return said.now === 'given' && said.givenAt!.getTime() > startedAt ? 'unknown' : said.now;
}

/** After a failure the agent's exploring pauses, each time for longer. */
function noteResult(agent: Explored, isWell: boolean): boolean {
  agent.failures = isWell ? 0 : agent.failures + 1;
  if (!isWell) agent.pausedUntil = Date.now() + Math.min(longestPauseMs, firstPauseMs * 2 ** (agent.failures - 1));
  return isWell;
}
