/**
 * Where a call goes, in order: for a release, its upstream and then the baseline's; for any other model, the upstream that
 * lists it and then its fallbacks. Each target has its own body, because each server calls its model by its own name.
 */

import type { Endpoint } from '../collect/turn.ts';
import type { Picked } from '../deploy/routes.ts';
import { RequestError } from '../errors.ts';
import type { Target } from './forward.ts';
import { releasedBytes } from './released-body.ts';
import { withFields } from './rewrite.ts';
import type { Upstreams } from './upstreams.ts';

export type Asked = {
  readonly bytes: Buffer;
  readonly body: Readonly<Record<string, unknown>>;
  /** Where the model's name stands in the bytes, if that is known already. */
  readonly modelSpans: [number, number][] | null;
  readonly model: string;
  /** Upstream calls for one request before the next target is asked. */
  readonly attempts: number;
  readonly answerHeaders: Readonly<Record<string, string>>;
  readonly endpoint: Endpoint;
  /** How long the first byte of a release with a fallback is waited for; null: as long as any upstream's. */
  readonly firstByteMs: number | null;
};

export function targetsOf(asked: Asked, picked: Picked | null, upstreams: Upstreams): Target[] {
  const targets = picked === null ? plain(asked, upstreams) : released(asked, picked, upstreams);
  if (targets.length > 0) return targets;
  throw new RequestError(
    503,
    'no_upstream',
    picked === null || upstreams.names.length === 0
      ? 'No upstream is configured. Set PAWL_UPSTREAM or `upstreams` in pawl.config.ts to an OpenAI-compatible server.'
      : `Release ${picked.release.name} is served by upstream ${picked.release.upstream}, which is not configured here.`,
  );
}

function plain({ bytes, body, model, attempts, answerHeaders }: Asked, upstreams: Upstreams): Target[] {
  const chain = upstreams.chain(model);
  if (chain.length === 0) return [];
  const sent = withFields(bytes, body, upstreams.get(chain[0]!).defaults);
  return chain.map((upstream) => ({
    upstream,
    body: sent,
    attempts,
    release: `${upstream}/${model}`,
    replaceable: false,
    answerHeaders,
  }));
}

function released(asked: Asked, { release, fallback, alone = false }: Picked, upstreams: Upstreams): Target[] {
  const { bytes, body, modelSpans, attempts, answerHeaders, endpoint, firstByteMs } = asked;
  return [release, ...(fallback === null ? [] : [fallback])].flatMap((one): Target[] => {
    // A candidate gets one try, and no other server's help: what it cannot do, the baseline does.
    const replaceable = fallback !== null && one === release;
    const chain = upstreams.from(one.upstream);
    return (replaceable || alone ? chain.slice(0, 1) : chain).map((upstream) => ({
      upstream,
      body: releasedBytes(bytes, body, modelSpans, one, upstreams.get(upstream), endpoint),
      attempts: replaceable ? 1 : attempts,
      release: one.name,
      replaceable,
      ...(replaceable && firstByteMs !== null ? { firstByteMs } : {}),
      answerHeaders: { ...answerHeaders, 'x-pawl-release': one.name },
    }));
  });
}
