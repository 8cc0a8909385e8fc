/** Turns, siblings, signals and attachments for tests and benches: every field set, so that a test names only what it is about. */
import { randomBytes } from 'node:crypto';
import type { Sibling } from '../collect/sibling.ts';
import type { Attachment, JournalEntry, Signal } from '../collect/signal.ts';
import type { Turn } from '../collect/turn.ts';

/** A UUIDv7 of the given time. */
export const uuidAt = (at: number): string => {
  const hex = Math.floor(at).toString(16).padStart(12, '0') + randomBytes(10).toString('hex');
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-7${hex.slice(13, 16)}-a${hex.slice(17, 20)}-${hex.slice(20, 32)}`;
};

export const noon = Date.UTC(2026, 4, 20, 12);

export const turn = (fields: Partial<Turn> = {}): Turn => {
  const startedAt = fields.startedAt ?? noon;
  return {
    id: uuidAt(startedAt),
    trajectory: 'conversation-1',
    agent: 'desk',
    user: null,
    origin: 'production',
    keys: [],
    endpoint: 'chat',
    startedAt,
    firstTokenMs: 40,
    latencyMs: 250,
    upstream: 'local',
    release: 'base',
    model: 'small',
    status: 'ok',
    httpStatus: 200,
    error: null,
    attempts: 1,
    stream: false,
    request: { model: 'small', messages: [{ role: 'user', content: 'Where is my parcel?' }] },
    choices: [{ index: 0, message: { role: 'assistant', content: 'On its way.' }, finishReason: 'stop' }],
    promptTokens: 12,
    completionTokens: 4,
    reasoningTokens: null,
    usage: { prompt_tokens: 12, completion_tokens: 4, total_tokens: 16 },
    threadKey: null,
    redactions: {},
    ...fields,
  };
};

export const sibling = (of: Pick<Turn, 'id' | 'agent' | 'startedAt'>, fields: Partial<Sibling> = {}): Sibling => ({
  parent: of.id,
  id: uuidAt(of.startedAt + 1000),
  agent: of.agent,
  origin: 'exploration',
  startedAt: of.startedAt + 1000,
  latencyMs: 300,
  upstream: 'local',
  release: 'base',
  model: 'small',
  temperature: 0.9,
  topP: null,
  choices: [{ index: 0, message: { role: 'assistant', content: 'It will come.' }, finishReason: 'stop' }],
  promptTokens: 12,
  completionTokens: 5,
  redactions: {},
  ...fields,
});

export const signal = (fields: Partial<Signal> = {}): Signal => {
  const at = fields.at ?? noon;
  return {
    id: uuidAt(at),
    identity: 'vote/conversation-1/ann',
    agent: 'desk',
    target: { kind: 'trajectory', id: 'conversation-1' },
    kind: 'feedback',
    name: 'vote',
    value: 1,
    unit: null,
    user: 'ann',
    key: null,
    comment: null,
    correction: null,
    at,
    receivedAt: at,
    ...fields,
  };
};

export const attachment = (fields: Partial<Attachment> = {}): Attachment => ({
  agent: 'desk',
  key: 'order:1',
  trajectory: null,
  turn: null,
  at: noon,
  ...fields,
});

export const entry = {
  turn: (fields?: Partial<Turn>): JournalEntry => ({ kind: 'turn', turn: turn(fields) }),
  signal: (fields?: Partial<Signal>): JournalEntry => ({ kind: 'signal', signal: signal(fields) }),
  attachment: (fields?: Partial<Attachment>): JournalEntry => ({ kind: 'attachment', attachment: attachment(fields) }),
};
