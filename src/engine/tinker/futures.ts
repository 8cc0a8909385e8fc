/**
 * The result of something a server has accepted, by long polling. A poll that ends without a result is followed by the next at once
 * if the server held it, after a while if it did not; the whole wait has a limit. Polling twice is legal and changes nothing, so
 * whatever happens to a poll, the next one is safe.
 *
 *   waiting ──200, 'try again', 408, 5xx──▶ waiting     ──429, no connection──▶ waiting, after a pause
 *   waiting ──200 with a result──▶ done                 ──400, {"error"}, 404, 410, time──▶ failed
 */
import { setTimeout as wait } from 'node:timers/promises';
import type { z } from 'zod';
import { EngineError } from '../../errors.ts';
import { protoType } from './proto.ts';
import { parsed, Refusal, refusalOf, type Transport } from './transport.ts';
import { failure, notYet } from './wire.ts';

/** What a result is that comes as protobuf. */
export type Decode = (message: Buffer) => unknown;

export type FutureOptions = {
  /** Most time for the whole wait. */
  readonly limitMs: number;
  /** Most time without any answer from the server. */
  readonly patienceMs: number;
};

const path = '/api/v1/retrieve_future';
/** The server answers within 40 seconds or so; SkyRL holds a poll for 300. */
const pollMs = 45_000;

export async function awaitFuture<T>(
  transport: Transport,
  requestId: string,
  schema: z.ZodType<T>,
  decode: Decode | undefined,
  { limitMs, patienceMs }: FutureOptions,
): Promise<T> {
  const began = Date.now();
  let heard = began;
  for (let misses = 0; ; ) {
    const asked = Date.now();
    if (asked - began > limitMs)
      throw new EngineError(
        `The server has not finished request ${requestId} within ${Math.round(limitMs / 1000)} seconds (engine.waitSeconds); look at what it does, or give it longer.`,
        { retryable: true },
      );
    let answer: Awaited<ReturnType<Transport['once']>>;
    try {
      answer = await transport.once(
        path,
        { request_id: requestId },
        { timeoutMs: pollMs, isPoll: true, accept: decode && protoType },
      );
      heard = Date.now();
    } catch (error) {
      if (!(error instanceof EngineError) || !error.retryable) throw error;
      // A poll that the server holds for longer than we wait is how it says "not yet".
      if (Date.now() - asked >= pollMs) {
        heard = Date.now();
        misses = 0;
        continue;
      }
      if (Date.now() - heard > patienceMs) throw error;
      await pause(misses++);
      continue;
    }
    const { status, json, proto } = answer;
    if (status === 200 && proto !== undefined) {
      if (decode === undefined)
        throw new EngineError(`The server answered ${path} with protobuf, which nobody asked for.`);
      return parsed(schema, decode(proto), path);
    }
    if (status === 200) {
      if (!notYet.safeParse(json).success) {
        const failed = failure.safeParse(json);
        if (failed.success) throw new Refusal(400, `The server could not do it: ${failed.data.error.slice(0, 600)}`);
        return parsed(schema, json, path);
      }
    } else if (status !== 408 && status !== 429 && status < 500) throw refusalOf(status, path, json);
    // Answered without holding the poll: not asked again in a tight loop.
    misses = status === 429 || Date.now() - asked < 1000 ? misses + 1 : 0;
    if (misses > 0) await pause(misses - 1);
  }
}

/** 0.1 s, doubled up to 10 s. An engine that was closed meanwhile finds out with its next poll. */
const pause = (misses: number): Promise<void> => wait(Math.min(100 * 2 ** misses, 10_000));
