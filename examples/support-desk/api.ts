/** Pawl's API, as anybody with the admin token calls it. */
export type PawlApi = {
  <T = unknown>(method: string, path: string, body?: unknown, signal?: AbortSignal): Promise<T>;
  /** Address of the server, without a path. */
  readonly url: string;
};

const waitMs = 60_000;

export function openApi(url: string, token: string): PawlApi {
  const call = async (method: string, path: string, body?: unknown, signal?: AbortSignal) => {
    const limit = AbortSignal.timeout(waitMs);
    const response = await fetch(`${url}${path}`, {
      method,
      headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      signal: signal ? AbortSignal.any([signal, limit]) : limit,
    });
    const text = await response.text();
    if (!response.ok) throw new Error(`${method} ${path} answered ${response.status}: ${text}`);
    return text === '' ? undefined : JSON.parse(text);
  };
  return Object.assign(call, { url }) as PawlApi;
}
