import { Time } from './time.tsx';

/** With much stored, what takes long to count is of a while ago, and says so; what was counted just now needs no word. */
export function Counted({ at }: { readonly at: string }) {
  return Date.now() - Date.parse(at) < 60_000 ? null : (
    <p className="note">
      Counted <Time at={at} isAgo />.
    </p>
  );
}
