/** Feedback, outcomes, what users did, and attached keys: answered with 202 once they are on disk. */
import type { Recorder } from '../collect/recorder.ts';
import { uuidv7 } from '../collect/uuid.ts';
import { ComeBackLater } from './admit.ts';
import { identify, parseBody } from './door.ts';
import { sendJson } from './error-shape.ts';
import type { Metrics } from './metrics.ts';
import type { SignalLimits } from './signal-limits.ts';
import { attachments, eventSignal, feedbackSignal, outcomeSignal } from './signals.ts';
import type { Visit } from './visit.ts';

const makers: Readonly<Record<string, typeof feedbackSignal>> = {
  '/feedback': feedbackSignal,
  '/outcomes': outcomeSignal,
  '/events': eventSignal,
};

export const isSignalRoute = (route: string): boolean => Object.hasOwn(makers, route) || route === '/attach';

export async function receiveSignal(
  {
    recorder,
    limits,
    metrics,
  }: { readonly recorder: Recorder; readonly limits: SignalLimits; readonly metrics: Metrics },
  { path, request, response, key }: Visit,
  bytes: Buffer,
): Promise<void> {
  const body = parseBody(bytes);
  const now = Date.now();
  const { trajectory, user } = identify(path, request.headers, null);
  const context = { id: uuidv7(now), agent: key.agent, key: key.id, user, trajectory, now };
  const entries =
    path.route === '/attach'
      ? attachments(body, context).map((attachment) => ({ kind: 'attachment' as const, attachment }))
      : [{ kind: 'signal' as const, signal: makers[path.route]!(body, context) }];
  for (const entry of entries) await limits.check(key, entry, now);
  for (const entry of entries) {
    if ((await recorder.signal(entry)) !== 'journalled')
      throw new ComeBackLater(
        503,
        'not_recorded',
        'This cannot be made durable now (journal full or disk full); send it again.',
        5000,
      );
    if (entry.kind === 'signal') metrics.signalReceived(key.agent, entry.signal.kind, entry.signal.name);
  }
  sendJson(response, 202, { id: context.id, status: 'accepted' });
}
