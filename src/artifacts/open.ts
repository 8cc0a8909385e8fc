/** The one place that makes an artifact store, from an installation's settings. Nothing is made or asked before it is needed. */
import { join } from 'node:path';
import { type Artifacts, createArtifacts } from './artifacts.ts';
import { folderPlace } from './folder-place.ts';
import { s3Place } from './s3-place.ts';
import type { ArtifactSettings } from './settings.ts';

export type ArtifactsAt = {
  readonly home: string;
  readonly artifacts?: ArtifactSettings | undefined;
  readonly artifactCacheMb?: number;
};

export function openArtifacts({ home, artifacts, artifactCacheMb = 20_480 }: ArtifactsAt): Artifacts {
  const place = typeof artifacts === 'object' ? s3Place(artifacts) : folderPlace(artifacts ?? join(home, 'artifacts'));
  return createArtifacts({ place, home, cacheBytes: artifactCacheMb * 1024 * 1024 });
}
