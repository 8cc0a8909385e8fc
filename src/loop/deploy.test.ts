/** What the loop does with a candidate that passed its evaluation and does not fit where it would serve. */
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect, it, onTestFinished } from 'vitest';
import { agentSchema } from '../agent.ts';
import { createRelease, serveRelease } from '../deploy/reconcile.ts';
import { readAudit } from '../store/audit.ts';
import { leading } from '../store/lead.ts';
import { saveReport } from '../store/reports.ts';
import { listRollouts } from '../store/rollouts.ts';
import { withStore } from '../store/test-store.ts';
import { deploy } from './deploy.ts';
import type { Work } from './parts.ts';
import type { LoopTurn } from './turn.ts';

/** A gateway whose server refuses every prompt, as one does whose template is broken. */
async function refusing(): Promise<string> {
  const server = createServer((request, response) => {
    request.resume();
    response.writeHead(400, { 'content-type': 'application/json' });
    response.end(JSON.stringify({ error: { message: 'Conversation roles must alternate.' } }));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

it('ends the turn with what is missing, and waits where nothing can be asked', async () => {
  const store = await withStore();
  const agent = agentSchema.parse({ name: 'desk', deploy: { outcome: null, promotion: { rule: 'checks' } } });
  const release = (name: string) =>
    createRelease(store, { agent: 'desk', name, upstream: 'engine', model: name, checkpoint: '/x' }, 'pawl', 1);
  await serveRelease(store, await release('desk-0'), 'pawl', 1);
  await release('desk-1');
  await saveReport(store, {
    ...{ id: 'report-1', agent: 'desk', baseline: 'desk-0', candidate: 'desk-1', attempts: 1, temperature: 1, seed: 7 },
    ...{ suite: { name: 'golden', hash: 'abc', tasks: 0 }, overall: null, types: {}, tasks: [], drift: null },
    ...{ verdict: 'pass', reasons: [], seconds: 0, createdAt: 1 },
  });
  const turn = {
    ...{ agent: 'desk', number: 1, seed: 1, done: [], startedAt: 1, endedAt: null },
    state: {
      baseline: { release: 'desk-0', checkpoint: '/x' },
      train: { checkpoint: '/x' },
      evaluate: { report: 'report-1' },
    },
  } as unknown as LoopTurn;
  const through = (url: string | null) =>
    leading(store, 'loop', 'test', (lead) =>
      deploy(
        {
          ...{ store, agent, lead, signal: new AbortController().signal, gatewayUrl: async () => url },
          ...{ engine: async () => ({ models: async () => [{ name: 'desk-1' }] }), say: { progress: () => {} } },
        } as unknown as Work,
        turn,
      ),
    );
  await expect(through(null)).rejects.toThrow(/none runs that can be reached from here: start `pawl serve`/);
  const found = await through(await refusing());
  expect(found?.done).toMatchObject({
    deploy: {
      ...{ rollout: null, release: 'desk-1', phase: 'not deployed: unfit' },
      reasons: [
        expect.stringMatching(
          /^Release desk-1 gets no user: it does not fit engine\. template: .*roles must alternate\./,
        ),
      ],
    },
  });
  expect(await listRollouts(store, { agent: 'desk' })).toEqual([]);
  expect(await readAudit(store, { event: 'compatibility-checked' })).toMatchObject([{ actor: 'pawl' }]);
});
