/**
 * What each route asks of a client key. Outcomes decide what a model learns, so they need a scope that a key has only if
 * somebody asked for it. Whoever may call a model may also see which there are.
 */
import { RequestError } from '../errors.ts';
import type { Key, Scope } from '../store/keys.ts';

const routes: Readonly<Record<string, readonly Scope[]>> = {
  '/feedback': ['feedback'],
  '/events': ['feedback'],
  '/outcomes': ['outcomes'],
  // A business key joins a conversation to its outcomes: both sides know it.
  '/attach': ['call', 'outcomes'],
};

/** Any one of these will do. */
const scopesFor = (route: string): readonly Scope[] =>
  routes[route] ?? (route === '/models' || route.startsWith('/models/') ? ['call', 'read'] : ['call']);

export function checkScope(key: Pick<Key, 'name' | 'agent' | 'scopes'>, route: string): void {
  const wanted = scopesFor(route);
  if (wanted.some((scope) => key.scopes.includes(scope))) return;
  throw new RequestError(
    403,
    'missing_scope',
    `Key ${key.name} may not use /v1${route.slice(0, 100)}: that needs the scope ${wanted.join(' or ')}, and it has ${key.scopes.join(', ')}. Make a key that has it: pawl keys create NAME --agent ${key.agent} --scope ${wanted[0]}.`,
  );
}
