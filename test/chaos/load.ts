/**
 * The load of a chaos run: so many requests a second whatever becomes of them, each with an id of its own, each entered in
 * the ledger when it is sent and when it ends. Conversations of one to four calls, plain and streamed; votes and outcomes
 * about those that were answered, sent again under the same identity until they are acknowledged.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { Pool } from 'undici';
import type { Random } from '../../src/simulate/random.ts';
import { type Kind, type Ledger, now, type Sent } from './ledger.ts';

export type Seen = { readonly status: number; readonly text: string; readonly headers: Record<string, unknown> };

export type Load = {
  /** Share of each model's name among calls; a fault may change it. */
  mix: Readonly<Record<string, number>>;
  readonly usualMix: Readonly<Record<string, number>>;
  /** Sends one call with a body of its own making, under a new id. */
  call(body: (id: string) => string | Uint8Array, provoked?: boolean): Promise<Sent>;
  vote(trajectory: string, more?: object): Promise<Sent>;
  /** Sends no more and resolves when everything under way has ended. */
  pause(): Promise<void>;
  resume(): void;
  close(): Promise<void>;
};

export type LoadOptions = {
  readonly ledger: Ledger;
  readonly origin: string;
  readonly key: string;
  /** Requests a second. */
  readonly rate: number;
  readonly random: Random;
  readonly prefix: string;
};

const limitMs = 30_000;
const mostInFlight = 4_000;
const voteAttempts = 4;
const kinds: Readonly<Record<Kind, number>> = { call: 45, stream: 20, vote: 20, outcome: 15 };
/** Models whose answers are as they should be. */
const honest = new Set(['echo', 'tools', 'reasoner', 'tiny']);
const usualMix = { echo: 90, tools: 3, reasoner: 3, 'slow-200': 1, 'lie-json': 0.3, cut: 0.3, 'down-1': 0.4, tiny: 1 };

/** Letters only: digits in a row could be taken for somebody's number and masked. */
function letters(n: number): string {
  let word = '';
  for (let left = n; word.length < 5 || left > 0; left = Math.floor(left / 26))
    word = String.fromCharCode(97 + (left % 26)) + word;
  return word;
}

export function startLoad({ ledger, origin, key, rate, random, prefix }: LoadOptions): Load {
  const pool = new Pool(origin, { connections: 1024, pipelining: 1, headersTimeout: limitMs, bodyTimeout: limitMs });
  let count = 0;
  let inFlight = 0;
  let running = true;
  /** Nobody listens: one in ten goes on trying, so that the machine belongs to the start. */
  let away = false;
  /** Answered trajectories that may get another call, a vote, an outcome. */
  const going: { trajectory: string; calls: number }[] = [];
  const unjudged: Record<'vote' | 'outcome', string[]> = { vote: [], outcome: [] };

  const newId = () => `${prefix}-${letters(count++)}`;

  async function post(sent: Sent, path: string, body: string | Uint8Array): Promise<Seen> {
    inFlight++;
    ledger.sent.push(sent);
    let seen: Seen = { status: 0, text: '', headers: {} };
    try {
      const answer = await pool.request({
        method: 'POST',
        path,
        body,
        headers: { 'content-type': 'application/json', authorization: `Bearer ${key}` },
      });
      const turn = answer.headers['x-pawl-turn'];
      if (typeof turn === 'string') sent.record = turn;
      seen = { status: answer.statusCode, text: await answer.body.text(), headers: answer.headers };
      away = false;
    } catch (error) {
      // No whole answer: status 0.
      if ((error as NodeJS.ErrnoException).code === 'ECONNREFUSED') away = true;
    }
    inFlight--;
    sent.endedAt = now();
    sent.status = seen.status;
    sent.retryAfter = seen.headers['retry-after'] !== undefined;
    if (seen.status >= 400) sent.code = codeIn(seen.text);
    return seen;
  }

  const entry = (kind: Kind, id: string, trajectory: string, provoked: boolean): Sent => ({
    id,
    kind,
    trajectory,
    sentAt: now(),
    provoked,
    endedAt: null,
    status: 0,
    code: null,
    retryAfter: false,
    record: null,
  });

  async function converse(kind: 'call' | 'stream'): Promise<void> {
    const id = newId();
    const before = random.chance(0.3) ? going.shift() : undefined;
    const trajectory = before?.trajectory ?? id;
    const model = random.weighted(load.mix);
    const sent = entry(kind, id, trajectory, !honest.has(model));
    const asks = { role: 'user', content: `This is ${id}. ${'Where is my parcel? '.repeat(random.integer(1, 20))}` };
    const messages = before === undefined ? [asks] : [{ role: 'user', content: 'Hello.' }, asks];
    const body = JSON.stringify({ model, messages, stream: kind === 'stream', max_tokens: 8, user: `user-${id}` });
    await post(sent, `/t/${trajectory}/v1/chat/completions`, body);
    if (sent.status !== 200) return;
    const calls = (before?.calls ?? 0) + 1;
    if (calls < 4) going.push({ trajectory, calls });
    if (calls === 1) for (const list of Object.values(unjudged)) list.push(trajectory);
    for (const list of [going, ...Object.values(unjudged)]) if (list.length > 500) list.shift();
  }

  async function judge(kind: 'vote' | 'outcome', trajectory: string, more: object = {}): Promise<Sent> {
    for (let attempt = 1; ; attempt++) {
      const sent = entry(kind, `${kind}-${trajectory}${attempt === 1 ? '' : `~${attempt}`}`, trajectory, false);
      const about = kind === 'vote' ? { vote: 'up' } : { name: 'resolved', value: true };
      const route = kind === 'vote' ? 'feedback' : 'outcomes';
      const { text } = await post(sent, `/t/${trajectory}/v1/${route}`, JSON.stringify({ ...about, ...more }));
      if (sent.status === 202) sent.record = idIn(text);
      if (sent.status === 202 || attempt === voteAttempts || !running) return sent;
      await sleep(100 * 2 ** attempt);
    }
  }

  function send(): void {
    if (inFlight >= mostInFlight || (away && !random.chance(0.1))) return;
    const kind = random.weighted(kinds);
    if (kind === 'call' || kind === 'stream') void converse(kind);
    else {
      const trajectory = unjudged[kind].shift();
      void (trajectory === undefined ? converse('call') : judge(kind, trajectory));
    }
  }

  // By the clock and not by the timer's count, which falls behind on a busy machine; a long gap is not made up for.
  let due = now();
  const timer = setInterval(() => {
    const time = now();
    due = Math.max(due, time - 500);
    for (; due <= time; due += 1000 / rate) if (running) send();
  }, 5);

  const idle = async () => {
    while (inFlight > 0) await sleep(10);
  };
  const load: Load = {
    mix: usualMix,
    usualMix,
    async call(body, provoked = false) {
      const id = newId();
      const sent = entry('call', id, id, provoked);
      await post(sent, `/t/${id}/v1/chat/completions`, body(id));
      return sent;
    },
    vote: (trajectory, more) => judge('vote', trajectory, more),
    pause() {
      running = false;
      return idle();
    },
    resume() {
      running = true;
    },
    async close() {
      running = false;
      clearInterval(timer);
      await idle();
      await pool.destroy();
    },
  };
  return load;
}

function codeIn(text: string): string | null {
  try {
    const code = (JSON.parse(text) as { error?: { code?: unknown } }).error?.code;
    return typeof code === 'string' ? code : null;
  } catch {
    return null;
  }
}

function idIn(text: string): string | null {
  try {
    const { id } = JSON.parse(text) as { id?: unknown };
    return typeof id === 'string' ? id : null;
  } catch {
    return null;
  }
}
