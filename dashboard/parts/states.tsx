/** What stands where data will be, would be, or should have been. */
import type { ReactNode } from 'react';
import type { Answer } from '../answer.ts';
import type { Problem } from '../client.ts';

export function Loading({ rows = 6, label = 'Loading' }: { readonly rows?: number; readonly label?: string }) {
  return (
    <div className="loading" role="status" aria-label={label}>
      {Array.from({ length: rows }, (_, at) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: they are all alike
        <div key={at} className="bone" />
      ))}
    </div>
  );
}

export function Failed({ problem, again }: { readonly problem: Problem; readonly again?: () => void }) {
  return (
    <div className="failed" role="alert">
      <p dir="auto">{problem.message}</p>
      {again && (
        <button type="button" onClick={again}>
          Try again
        </button>
      )}
    </div>
  );
}

/** Why there is nothing, and what would bring something. */
export function Empty({ title, children }: { readonly title: string; readonly children?: ReactNode }) {
  return (
    <div className="empty">
      <strong>{title}</strong>
      {children && <div>{children}</div>}
    </div>
  );
}

type AskedProps<T> = {
  readonly of: Answer<T>;
  readonly rows?: number;
  readonly children: (value: T) => ReactNode;
};

/** An answer in whichever state it is. Old figures stay when asking again failed, and say so. */
export function Asked<T>({ of, rows, children }: AskedProps<T>) {
  if (of.value === null)
    return of.problem === null ? (
      <Loading {...(rows === undefined ? {} : { rows })} />
    ) : (
      <Failed problem={of.problem} again={of.again} />
    );
  return (
    <>
      {of.problem && <Failed problem={of.problem} again={of.again} />}
      {children(of.value)}
    </>
  );
}
