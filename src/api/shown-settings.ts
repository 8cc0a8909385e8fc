/** The settings as people may see them: no secret, no function. What is not known to be harmless is masked rather than shown. */
import type { Config } from '../config.ts';
import { describeSpec } from '../score/weighted.ts';

const isSecretName = (name: string): boolean =>
  /key|token|secret|password|credential|authorization|cookie|headers/i.test(name);

/** An address without what opens it. */
const shownText = (text: string): string => {
  if (!/^[a-z][a-z0-9+.-]*:\/\//i.test(text)) return text;
  try {
    const url = new URL(text);
    if (url.username === '' && url.password === '' && url.search === '') return text;
    return `${url.protocol}//${url.host}${url.pathname}`;
  } catch {
    return 'an address';
  }
};

/** Text below a name that may be a secret's is told as `set`; numbers and switches are no secrets. */
function shown(value: unknown, secret: boolean, depth: number): unknown {
  if (value === null || typeof value === 'number' || typeof value === 'boolean') return value;
  if (typeof value === 'string') return secret ? 'set' : shownText(value);
  if (typeof value !== 'object' || depth === 0) return undefined;
  if (value instanceof RegExp) return String(value);
  if (Array.isArray(value)) return value.slice(0, 1000).map((one) => shown(one, secret, depth - 1) ?? null);
  return Object.fromEntries(
    Object.entries(value).flatMap(([name, one]) => {
      const said = shown(one, secret || isSecretName(name), depth - 1);
      return said === undefined ? [] : [[name, said]];
    }),
  );
}

type Shown = Pick<Config, 'agents' | 'upstreams' | 'engine' | 'retention' | 'pii' | 'alerts' | 'mlflow'>;

export function shownSettings({
  agents,
  upstreams,
  engine,
  retention,
  pii,
  alerts,
  mlflow,
}: Shown): Record<string, unknown> {
  const plain = agents.map(({ reward, environment, judging, ...agent }) => ({
    ...agent,
    reward: { version: reward.version, parts: describeSpec(reward) },
    environment: environment?.name ?? null,
    judging,
  }));
  return shown({ agents: plain, upstreams, engine, mlflow, retention, pii, alerts }, false, 12) as Record<
    string,
    unknown
  >;
}
