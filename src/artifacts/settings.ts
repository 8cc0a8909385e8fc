/** Where artifacts are kept, as the settings say it: a folder, `s3://bucket/prefix`, or the parts of the latter. */
import { z } from 'zod';

const bucket = z.string().regex(/^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$/, 'a bucket has 3 to 63 of a-z, 0-9, . and -');
const prefix = z
  .string()
  .max(400)
  .regex(/^[A-Za-z0-9!_.*'()/-]*$/, "letters, digits and ! _ . * ' ( ) / - only")
  .refine((text) => !text.split('/').some((name) => name === '..' || name === '.'), 'without . and .. as names')
  .transform((text) => text.replace(/^\/+|\/+$/g, '').replace(/\/{2,}/g, '/'));

const parts = z.strictObject({
  bucket: bucket.describe('The bucket; it must exist.'),
  prefix: prefix.default('').describe('What all keys begin with, for a bucket that holds other things too.'),
  region: z.string().min(1).max(64).optional().describe('Without it what the AWS SDK finds, e.g. AWS_REGION.'),
  endpoint: z
    .url({ protocol: /^https?$/, error: 'an http or https address such as http://127.0.0.1:9000' })
    .optional()
    .describe('Address of an S3 server of your own.'),
  forcePathStyle: z
    .boolean()
    .optional()
    .describe('Puts the bucket into the path instead of the name; true where there is an endpoint.'),
});

const text = z
  .string()
  .min(1)
  .max(4096)
  .transform((given, context) => {
    const [, name, rest = ''] = /^s3:\/\/([^/]*)(?:\/(.*))?$/.exec(given) ?? [];
    const parsed = name === undefined ? null : parts.safeParse({ bucket: name, prefix: rest });
    if (parsed?.success) return parsed.data;
    if (parsed === null && !/^[a-z][a-z0-9+.-]+:\/\//i.test(given)) return given;
    const problems = parsed?.error.issues.map(({ message }) => message) ?? ['a folder, or s3://bucket/prefix'];
    for (const message of problems) context.addIssue({ code: 'custom', message });
    return z.NEVER;
  });

export const artifactSettings = z.union([parts, text], {
  // What is wrong with a text is said; that it is no object either is no help.
  error: ({ errors = [] }) =>
    (errors as readonly { readonly code: string; readonly message: string }[][])
      .flat()
      .find(({ code }) => code === 'custom')?.message ??
    'a folder, s3://bucket/prefix, or { bucket, prefix, region, endpoint, forcePathStyle }',
});
/** A folder, or a bucket. */
export type ArtifactSettings = z.output<typeof artifactSettings>;
