/** The package installed by npm itself, with all that it depends on and nothing of what it is developed with. */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { npmInstall, type Project, packedProject } from './packed.ts';
import { startUpstream, type TestUpstream } from './upstream.ts';

let project: Project;
let upstream: TestUpstream;
afterAll(async () => {
  await project.remove();
  await upstream.close();
});

test('npm install into an empty folder, then init, serve and a call', async () => {
  upstream = await startUpstream();
  project = await packedProject(npmInstall);
  for (const name of ['tsx', 'typescript', 'vitest', 'esbuild'])
    expect(existsSync(join(project.folder, 'node_modules', name)), name).toBe(false);
  await project.pawl(['init', '--upstream', upstream.url]);
  const { url, key, stop } = await project.serve();
  const answer = await fetch(`${url}/v1/chat/completions`, {
    method: 'POST',
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
    body: JSON.stringify({ model: 'echo', messages: [{ role: 'user', content: 'Hello?' }] }),
  });
  expect(await answer.json()).toMatchObject({ choices: [{ message: { content: 'You said: Hello?' } }] });
  await stop();
});
