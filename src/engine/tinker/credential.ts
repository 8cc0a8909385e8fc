/**
 * What goes into X-API-Key. A server of one's own takes any key or none; Tinker may have the key exchanged for one that ends after
 * a while, and is asked for the next before that. The key itself goes to the server and nowhere else.
 */
import { z } from 'zod';
import { createTransport, type TransportOptions } from './transport.ts';
import { clientConfig, keyAnswer, sdkVersion } from './wire.ts';

/** Asked for anew when this little is left of it. */
const marginMs = 5 * 60_000;

const claims = z.object({ exp: z.number() });

/** When a JWT ends, in milliseconds since the epoch; 0 if it does not say. */
function endOf(jwt: string): number {
  try {
    const json: unknown = JSON.parse(Buffer.from(jwt.split('.')[1] ?? '', 'base64url').toString('utf8'));
    return 1000 * (claims.safeParse(json).data?.exp ?? 0);
  } catch {
    return 0;
  }
}

export function exchangedKey(
  apiKey: string,
  options: Omit<TransportOptions, 'key'>,
  now: () => number = Date.now,
): () => Promise<string> {
  const transport = createTransport({ ...options, key: async () => apiKey });
  let current: Promise<{ key: string; until: number }> | undefined;
  const fetchKey = async () => {
    const { pjwt_auth_enabled: exchanges } = await transport.post(
      '/api/v1/client/config',
      { sdk_version: sdkVersion },
      clientConfig,
    );
    if (!exchanges) return { key: apiKey, until: Number.POSITIVE_INFINITY };
    const { jwt } = await transport.post('/api/v1/auth/token', {}, keyAnswer);
    return { key: jwt, until: Math.max(endOf(jwt) - marginMs, now() + 60_000) };
  };
  return async () => {
    if (current === undefined || (await current).until <= now()) {
      const next = fetchKey();
      current = next;
      // What could not be had is asked for again by whoever comes next.
      next.catch(() => {
        if (current === next) current = undefined;
      });
    }
    return (await current).key;
  };
}
