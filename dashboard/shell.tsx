/** What is around every page: the loop as navigation, whose loop it is, who is looking, and whether the line to Pawl stands. */
import { Component, type ReactNode, Suspense, useState } from 'react';
import { useAgents } from './agent.tsx';
import { asProblem } from './answer.ts';
import { useIsLive } from './live.ts';
import { pages } from './pages.ts';
import { Empty, Failed, Loading } from './parts/states.tsx';
import { Link, setQuery, usePlace } from './router.tsx';
import { useSession } from './session.tsx';
import { currentTheme, setTheme, type Theme } from './theme.ts';

export function Shell() {
  const { parts } = usePlace();
  const [at = '', ...rest] = parts;
  const page = pages.find((one) => one.at === at);
  return (
    <div className="shell">
      <a className="skip" href="#content">
        To the content
      </a>
      <header className="side">
        <Link className="brand" to="/">
          Pawl
        </Link>
        <nav aria-label="Pages">
          {pages.map(({ at: where, name }) => (
            <Link key={where} to={`/${where}`} aria-current={where === at ? 'page' : undefined}>
              {name}
            </Link>
          ))}
        </nav>
        <Around />
      </header>
      <main id="content" tabIndex={-1}>
        <Mishap key={parts.join('/')}>
          <Suspense fallback={<Loading rows={10} />}>
            {page === undefined ? (
              <Empty title={`There is no page ${location.pathname.slice(0, 100)}.`}>
                <Link to="/">To the overview</Link>
              </Empty>
            ) : (
              <page.Page rest={rest} />
            )}
          </Suspense>
        </Mishap>
      </main>
    </div>
  );
}

function Around() {
  const { agent, agents } = useAgents();
  const { session, signOut } = useSession();
  const isLive = useIsLive();
  const [theme, choose] = useState(currentTheme);
  return (
    <div className="around">
      {agents.length > 1 && (
        <label>
          <span>Agent</span>
          <select value={agent} onChange={(event) => setQuery({ agent: event.target.value })}>
            {agents.map((name) => (
              <option key={name}>{name}</option>
            ))}
          </select>
        </label>
      )}
      <label>
        <span>Theme</span>
        <select
          value={theme}
          onChange={(event) => {
            const chosen = event.target.value as Theme;
            setTheme(chosen);
            choose(chosen);
          }}
        >
          <option value="system">system</option>
          <option value="light">light</option>
          <option value="dark">dark</option>
        </select>
      </label>
      <p className={`line ${isLive ? 'up' : 'down'}`} role="status">
        {isLive ? 'Live' : 'Connecting …'}
      </p>
      <p className="who">
        <span dir="auto">{session.name ?? 'admin token'}</span>
        <span className="note">{session.role}</span>
        <button type="button" className="quiet" onClick={signOut}>
          Sign out
        </button>
      </p>
    </div>
  );
}

/** A page that fails takes only itself down. */
class Mishap extends Component<{ readonly children: ReactNode }, { readonly error: unknown }> {
  override state = { error: null as unknown };
  static getDerivedStateFromError(error: unknown) {
    return { error };
  }
  override render() {
    if (this.state.error === null) return this.props.children;
    return <Failed problem={asProblem(this.state.error)} again={() => this.setState({ error: null })} />;
  }
}
