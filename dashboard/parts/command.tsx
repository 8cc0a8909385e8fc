/** The command that does what the page does. */
import { useState } from 'react';

export function Command({ line }: { readonly line: string }) {
  const [copied, setCopied] = useState(false);
  const copy = () => {
    // Without https and off localhost a browser has no clipboard; the text can still be selected.
    navigator.clipboard?.writeText(line).then(
      () => setCopied(true),
      () => {},
    );
  };
  return (
    <div className="command">
      <code dir="ltr">{line}</code>
      <button type="button" className="quiet" onClick={copy} aria-label={`Copy the command ${line}`}>
        {copied ? 'Copied' : 'Copy'}
      </button>
    </div>
  );
}
