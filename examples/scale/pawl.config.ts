/** The settings of all processes of one installation, the same file on each machine; what differs comes from the environment. */
import { defineConfig } from 'pawl';

export default defineConfig({
  agents: [
    {
      name: 'support-desk',
      train: { base: '/srv/pawl/models/base' },
      evaluate: { golden: '/srv/pawl/golden.jsonl' },
    },
  ],
  // Where answers come from. Releases of the loop's own models are served by each gateway's engine beside these.
  upstreams: { vllm: { baseUrl: 'http://10.0.0.20:8000/v1' } },
  // DATABASE_URL, PAWL_ADMIN_TOKEN, PAWL_ARTIFACTS, PAWL_HOST and PAWL_PORT are set for each process.
});
