/**
 * A session at the server: all that this engine has there belongs to it, and the server gives it up when it hears nothing for a
 * while. So it says every ten seconds that it lives. A server that does not know the session any more (it was started again, or we were
 * silent for too long) has lost everything in it: `onLost` is told once, and what is asked next is asked in a new session.
 */
import type { z } from 'zod';
import { EngineError } from '../../errors.ts';
import { version } from '../../version.ts';
import type { Dialect } from './dialects.ts';
import { awaitFuture, type Decode, type FutureOptions } from './futures.ts';
import { Refusal, type Transport } from './transport.ts';
import { accepted, sdkVersion, sessionAnswer } from './wire.ts';

export type Session = {
  readonly id: string;
  /** Numbers of models and samplers in this session. */
  nextModel(): number;
  nextSampler(): number;
  /** Sends what is answered at once. */
  ask<T>(path: string, body: object, schema: z.ZodType<T>): Promise<T>;
  /** Sends what is worked on; resolves when it is accepted, to the id of its future. */
  submit(
    path: string,
    body: object | Buffer,
    options?: { signal?: AbortSignal | undefined; headers?: Record<string, string>; onRetry?: () => void },
  ): Promise<string>;
  /** The result of what was accepted. */
  result<T>(requestId: string, schema: z.ZodType<T>, decode?: Decode): Promise<T>;
  /** Deletes something at the server; that it cannot be is no matter. */
  remove(path: string): Promise<void>;
  close(): void;
};

export type SessionOptions = {
  readonly transport: Transport;
  readonly dialect: Dialect;
  readonly waits: Pick<FutureOptions, 'limitMs' | 'patienceMs'>;
  readonly onLost: () => void;
  readonly heartbeatMs?: number; // 10 000
};

export async function openSession(options: SessionOptions): Promise<Session> {
  const { transport, dialect, waits, onLost, heartbeatMs = 10_000 } = options;
  const { session_id: id, error_message: problem } = await transport.post(
    '/api/v1/create_session',
    { tags: ['pawl'], user_metadata: { pawl: version }, sdk_version: sdkVersion, type: 'create_session' },
    sessionAnswer,
  );
  if (problem) throw new EngineError(`The server opened no session: ${problem}`);
  let lost: EngineError | undefined;
  let models = 0;
  let samplers = 0;

  const lose = (cause: Error): EngineError => {
    if (lost === undefined) {
      lost = new EngineError(
        `The server knows session ${id} no more, and with it the models are gone: it was started again, or heard nothing of us for too long. Load them again from what was saved. (${cause.message})`,
        { cause, retryable: true },
      );
      clearInterval(beating);
      onLost();
    }
    return lost;
  };
  const guarded = async <T>(work: () => Promise<T>): Promise<T> => {
    if (lost !== undefined) throw lost;
    try {
      return await work();
    } catch (error) {
      if (error instanceof Refusal && (error.status === 410 || dialect.forgot.test(error.message))) throw lose(error);
      throw error;
    }
  };

  const beat = async (): Promise<void> => {
    // A beat that is lost on its way is no loss: the server waits for many of them.
    const answer = await transport
      .once('/api/v1/session_heartbeat', { session_id: id, type: 'session_heartbeat' }, { timeoutMs: heartbeatMs })
      .catch(() => null);
    if (answer?.status === 404) lose(new EngineError('Its heartbeat was answered with 404.'));
  };
  const beating = setInterval(() => void beat(), heartbeatMs);
  beating.unref();
  await beat();

  return {
    id,
    nextModel: () => models++,
    nextSampler: () => samplers++,
    ask: (path, body, schema) => guarded(() => transport.post(path, body, schema)),
    submit: (path, body, { signal, headers, onRetry } = {}) =>
      guarded(
        async () =>
          (
            await transport.post(path, body, accepted, {
              ...(signal ? { signal } : {}),
              ...(headers ? { headers } : {}),
              ...(onRetry ? { onRetry } : {}),
            })
          ).request_id,
      ),
    result: (requestId, schema, decode) => guarded(() => awaitFuture(transport, requestId, schema, decode, waits)),
    remove: (path) => transport.remove(path).catch(() => {}),
    close: () => clearInterval(beating),
  };
}
