/** A sentence of Pawl's own in which what stands between backticks is a command or a setting. */
export const Sentence = ({ text }: { readonly text: string }) => (
  <>
    {text
      .split('`')
      // biome-ignore lint/suspicious/noArrayIndexKey: a piece is its place
      .map((piece, at) => (at % 2 === 1 ? <code key={at}>{piece}</code> : piece))}
  </>
);
