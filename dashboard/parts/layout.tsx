/** A page has a heading, what can be done with it, and panels. */
import { type ReactNode, useEffect, useId } from 'react';

type PageProps = {
  readonly title: string;
  /** A sentence. */
  readonly about?: ReactNode;
  readonly actions?: ReactNode;
  readonly children: ReactNode;
};

export function Page({ title, about, actions, children }: PageProps) {
  useEffect(() => {
    document.title = `${title} · Pawl`;
  }, [title]);
  return (
    <>
      <header className="page-head">
        <div>
          <h1 dir="auto">{title}</h1>
          {about && <p className="about">{about}</p>}
        </div>
        {actions && <div className="actions">{actions}</div>}
      </header>
      {children}
    </>
  );
}

type PanelProps = {
  readonly title: string;
  readonly note?: ReactNode;
  readonly actions?: ReactNode;
  readonly className?: string;
  readonly children: ReactNode;
};

export function Panel({ title, note, actions, className = '', children }: PanelProps) {
  const id = useId();
  return (
    <section className={`panel ${className}`} aria-labelledby={id}>
      <div className="panel-head">
        <h2 id={id}>{title}</h2>
        {note && <span className="note">{note}</span>}
        {actions && <div className="actions">{actions}</div>}
      </div>
      {children}
    </section>
  );
}

/** Names and what they stand for, one below the other. */
export function Facts({ of }: { readonly of: readonly (readonly [string, ReactNode])[] }) {
  return (
    <dl className="facts">
      {of.map(([name, value]) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd>{value}</dd>
        </div>
      ))}
    </dl>
  );
}
