/** The dashboard and the API that it asks, on a port of their own, over a store that a test has. */
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { pino } from 'pino';
import { ensureAdminToken } from '../src/api/admin.ts';
import { createApi } from '../src/api/api.ts';
import { createListener } from '../src/api/http.ts';
import { openArtifacts } from '../src/artifacts/open.ts';
import { type Config, parseConfig } from '../src/config.ts';
import { outcome } from '../src/score/outcome.ts';
import { toolUse } from '../src/score/tool-use.ts';
import { weighted } from '../src/score/weighted.ts';
import type { Store } from '../src/store/postgres.ts';

export const seededConfig = (home: string): Config =>
  parseConfig(
    {
      agents: [
        {
          name: 'desk',
          reward: weighted({
            resolved: [0.5, outcome('resolved')],
            tools: [0.3, toolUse()],
            tone: [0.2, outcome('tone')],
          }),
          deploy: { shadow: { holdSeconds: 0, minTurns: 50 }, approval: 'automatic' },
        },
        { name: 'shop' },
      ],
      upstreams: { vllm: { baseUrl: 'http://127.0.0.1:1/v1' } },
    },
    {},
    home,
  );

export type Dashboard = { readonly url: string; readonly token: string; close(): Promise<void> };

export async function openDashboard(store: Store, config: Config, home: string, port = 0): Promise<Dashboard> {
  let token = '';
  const adminHash = await ensureAdminToken(home, async (made) => {
    token = made;
  });
  const log = pino({ level: 'silent' });
  const api = createApi({
    store,
    artifacts: openArtifacts(config),
    config,
    secret: 's'.repeat(32),
    adminHash,
    recorder: () => null,
  });
  const server = createServer(
    createListener({
      ...{ config, instance: 'test', roles: new Set(['api']), adminHash, gateway: null, family: null, log },
      ...{ api: () => api, opens: () => true, problems: () => [], notReady: () => null, training: async () => '' },
    }),
  );
  await new Promise<void>((listening) => server.listen(port, '127.0.0.1', listening));
  const { port: taken } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${taken}`,
    token,
    close: () =>
      new Promise((closed) => {
        server.close(() => closed());
        server.closeAllConnections();
      }),
  };
}
