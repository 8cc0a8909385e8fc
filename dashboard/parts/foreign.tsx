/**
 * Text that came from outside: from users, models, tools. It is only ever a text node, in whichever direction it is written, and
 * what is very long is folded.
 */
import { useState } from 'react';
import { count } from '../words.ts';

const folded = 4_000;

export function Foreign({ text, className = '' }: { readonly text: string; readonly className?: string }) {
  const [isOpen, setOpen] = useState(false);
  const isLong = text.length > folded;
  return (
    <div className={`foreign ${className}`}>
      {isLong && isOpen ? (
        // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reachable by keyboard
        <section className="foreign-text scrolls" dir="auto" tabIndex={0} aria-label="The whole text">
          {text}
        </section>
      ) : (
        <div className="foreign-text" dir="auto">
          {isLong ? `${text.slice(0, folded)} …` : text}
        </div>
      )}
      {isLong && (
        <button type="button" className="quiet" onClick={() => setOpen(!isOpen)}>
          {isOpen ? 'Show less' : `Show all of ${count(Math.round(text.length / 1024))} kB`}
        </button>
      )}
    </div>
  );
}

/** A value as JSON, folded likewise. */
export const ForeignData = ({ value }: { readonly value: unknown }) => (
  <Foreign className="mono" text={typeof value === 'string' ? value : (JSON.stringify(value, null, 2) ?? '')} />
);
