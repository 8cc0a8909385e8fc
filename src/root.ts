/**
 * Where this installation lies, for what is read or started by its path. Source is in src/, and all that was built lies in dist/ itself, so from
 * this file it is one up in both.
 */
export const root = new URL('../', import.meta.url);

/** A package, or a clone that tests and benches have built; else the source. */
export const isBuilt = !import.meta.url.endsWith('.ts');
