/** A turn as the recorder would have it, for scorers: of a call that was played and that nobody records. */
import type { Turn } from './turn.ts';

type Told = Pick<Turn, 'id' | 'trajectory' | 'agent' | 'origin' | 'startedAt' | 'request' | 'choices'> &
  Partial<Pick<Turn, 'release'>>;

export const unrecordedTurn = (told: Told): Turn => ({
  ...{ user: null, keys: [], endpoint: 'chat', upstream: '', release: '', model: told.agent },
  ...{ firstTokenMs: null, latencyMs: 0, status: 'ok', httpStatus: 200, error: null, attempts: 1, stream: false },
  ...{ promptTokens: null, completionTokens: null, reasoningTokens: null, usage: null },
  ...{ threadKey: null, redactions: {} },
  ...told,
});
