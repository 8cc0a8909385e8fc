/** Who is looking. A link may carry a token behind its `#`; it is traded for a cookie and taken out of the address at once. */
import { createContext, type FormEvent, type ReactNode, useContext, useEffect, useState } from 'react';
import { asProblem } from './answer.ts';
import { ask, onSignedOut, Problem } from './client.ts';
import { startLive, stopLive } from './live.ts';

export const roles = ['viewer', 'reviewer', 'operator', 'admin'] as const;
export type Role = (typeof roles)[number];
export type Session = { readonly role: Role; readonly name: string | null; readonly expiresAt: string | null };

const Context = createContext<{ readonly session: Session; readonly signOut: () => void } | null>(null);

export function useSession() {
  const found = useContext(Context);
  if (found === null) throw new Error('There is no session above this part.');
  return found;
}

/** Whether who is looking may do what this role may. */
export const useMay = (needs: Role): boolean => roles.indexOf(useSession().session.role) >= roles.indexOf(needs);

/** The token of the address, which is cleared of it. */
function takeToken(): string | null {
  const token = new URLSearchParams(location.hash.slice(1)).get('token');
  if (token !== null) history.replaceState(null, '', location.pathname + location.search);
  return token;
}

const enter = (token: string) => ask('post', '/api/session', { json: { token } });

async function open(): Promise<Session | null> {
  const token = takeToken();
  if (token !== null) return enter(token);
  return ask('get', '/api/session').catch((error: unknown) => {
    if (error instanceof Problem && error.status === 401) return null;
    throw error;
  });
}

type State =
  | { readonly kind: 'opening' }
  | { readonly kind: 'out'; readonly problem: Problem | null }
  | { readonly kind: 'in'; readonly session: Session };

export function Signed({ children }: { readonly children: ReactNode }) {
  const [state, setState] = useState<State>({ kind: 'opening' });
  useEffect(() => {
    onSignedOut(() => setState({ kind: 'out', problem: null }));
    open().then(
      (session) => setState(session === null ? { kind: 'out', problem: null } : { kind: 'in', session }),
      (error: unknown) => setState({ kind: 'out', problem: asProblem(error) }),
    );
  }, []);
  const isIn = state.kind === 'in';
  useEffect(() => {
    if (!isIn) return;
    startLive();
    return stopLive;
  }, [isIn]);
  if (state.kind === 'opening') return <main className="entrance" aria-busy="true" />;
  if (state.kind === 'out')
    return <SignIn problem={state.problem} entered={(session) => setState({ kind: 'in', session })} />;
  const signOut = () => {
    const out = () => setState({ kind: 'out', problem: null });
    ask('delete', '/api/session').then(out, out);
  };
  return <Context value={{ session: state.session, signOut }}>{children}</Context>;
}

type SignInProps = { readonly problem: Problem | null; readonly entered: (session: Session) => void };

function SignIn({ problem: first, entered }: SignInProps) {
  const [token, setToken] = useState('');
  const [problem, setProblem] = useState(first);
  const [isBusy, setBusy] = useState(false);
  useEffect(() => {
    document.title = 'Sign in · Pawl';
  }, []);
  const submit = (event: FormEvent) => {
    event.preventDefault();
    setBusy(true);
    enter(token.trim())
      .then(entered, (error: unknown) => setProblem(asProblem(error)))
      .finally(() => setBusy(false));
  };
  return (
    <main className="entrance">
      <form onSubmit={submit}>
        <h1>Pawl</h1>
        <p>
          The first start printed a link with a token. Another is made with{' '}
          <code>pawl access create NAME --role viewer</code>.
        </p>
        <label className="field">
          <span>Token</span>
          <input
            type="password"
            autoComplete="current-password"
            value={token}
            onChange={(event) => setToken(event.target.value)}
            required
          />
        </label>
        {problem && (
          <p className="failed" role="alert">
            {problem.message}
          </p>
        )}
        <button type="submit" className="main" disabled={isBusy || token.trim() === ''}>
          Sign in
        </button>
      </form>
    </main>
  );
}
