import { ago, clock } from '../words.ts';

/** A moment in the reader's zone; the whole of it on hovering. */
export function Time({ at, isAgo = false }: { readonly at: string; readonly isAgo?: boolean }) {
  const date = new Date(at);
  const now = new Date();
  return (
    <time dateTime={at} title={at}>
      {isAgo ? ago(date, now) : clock(date, now)}
    </time>
  );
}
