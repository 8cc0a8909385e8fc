/**
 * The record of an artifact: files that belong together and never change, on a machine or on none: a dataset, a model, a
 * training checkpoint, a suite. Its manifest names each file with its size and SHA-256, and its reference is the
 * SHA-256 of that manifest, so whoever has the reference can tell whether what a disk or a server gave them is what was kept.
 *
 * What the database has instead of a path is the reference, `artifact:` and 64 hexadecimal digits. It is the same on
 * every machine. `of` says whose it is, where two owners of the same bytes must be able to part with them one by one.
 */
import { createHash } from 'node:crypto';
import { z } from 'zod';
import { ArtifactError } from '../errors.ts';

export const artifactKinds = ['dataset', 'model', 'checkpoint', 'suite', 'examples'] as const;
export type ArtifactKind = (typeof artifactKinds)[number];

const hash = z.string().regex(/^[0-9a-f]{64}$/);
export const reference = z
  .string()
  .regex(/^artifact:[0-9a-f]{64}$/, 'artifact: and 64 hexadecimal digits, as `pawl artifacts list` shows them');

/** Most files of one artifact, and most bytes of its manifest: what somebody could lay in our way is bounded. */
export const limits = { files: 10_000, manifestBytes: 8 * 1024 * 1024, pathBytes: 512, depth: 8 };

/** Names that every file system and every S3 server takes as they are, and that lead nowhere else. */
export const isFilePath = (path: string): boolean =>
  Buffer.byteLength(path) <= limits.pathBytes &&
  path.split('/').length <= limits.depth &&
  path.split('/').every((name) => /^[^\\/:*?"<>|\p{Cc}\p{Surrogate}]+$/u.test(name) && !/^\.|[. ]$/.test(name));

export const manifestSchema = z.strictObject({
  kind: z.enum(artifactKinds),
  of: z.string().max(400),
  /** References of artifacts without which this one is nothing: the base of an adapter. */
  needs: z.array(reference).max(8),
  files: z
    .array(
      z.strictObject({
        path: z.string().refine(isFilePath, 'leads out of the artifact, or is no name that every disk takes'),
        size: z.int().min(0),
        sha256: hash,
      }),
    )
    .min(1)
    .max(limits.files)
    .refine((files) => new Set(files.map(({ path }) => path)).size === files.length, 'names a file twice'),
});
export type Manifest = Readonly<z.infer<typeof manifestSchema>>;
export type ArtifactFile = Manifest['files'][number];

export const isReference = (text: string): boolean => reference.safeParse(text).success;

/** One text for one content, whatever the order in which a disk lists its files. */
export const manifestText = ({ kind, of, needs, files }: Manifest): string =>
  JSON.stringify({
    kind,
    of,
    needs: [...needs].sort(),
    files: files
      .map(({ path, size, sha256 }) => ({ path, size, sha256 }))
      .sort((a, b) => (a.path < b.path ? -1 : a.path > b.path ? 1 : 0)),
  });

const prefix = 'artifact:';
export const referenceOf = (text: string): string => prefix + createHash('sha256').update(text).digest('hex');
/** What its files and its manifest are kept under. */
export const hashOf = (ref: string): string => reference.parse(ref).slice(prefix.length);
export const sizeOf = ({ files }: Pick<Manifest, 'files'>): number => files.reduce((sum, { size }) => sum + size, 0);

/** The manifest if it is the one that the reference means; else an error that names both. */
export function parseManifest(ref: string, text: string, where: string): Manifest {
  if (referenceOf(text) !== ref)
    throw new ArtifactError(
      `The manifest of ${ref} in ${where} has been changed: its SHA-256 is another. Put the original back from a backup, or make the artifact anew.`,
    );
  return manifestSchema.parse(JSON.parse(text));
}
