/** Where weights are: the end of a path, or as much of an artifact's hash as tells it from others; all of it on a closer look. */
const shortOf = (of: string): string => {
  const artifact = /^(artifact:[0-9a-f]{10})[0-9a-f]+$/.exec(of);
  return artifact ? `${artifact[1]}…` : (of.split('/').filter(Boolean).at(-1) ?? of);
};

export const Reference = ({ of }: { readonly of: string | null }) =>
  of === null ? (
    '–'
  ) : (
    <span className="mono" title={of} dir="auto">
      {shortOf(of)}
    </span>
  );
