/** What `pawl init` writes: settings, an agent and its golden cases, with the words that explain them. */

export type InitialAgent = { readonly name: string; readonly upstream: string };

/** Text by path, in the order in which they are written: what names the others comes last. */
export const initialFiles = (agent: InitialAgent): Readonly<Record<string, string>> => ({
  'golden.jsonl': golden,
  [`agents/${agent.name}.ts`]: agentFile(agent),
  'pawl.config.ts': configFile(agent),
});

const literal = (text: string): string =>
  `'${JSON.stringify(text).slice(1, -1).replaceAll('\\"', '"').replaceAll("'", "\\'")}'`;

const configFile = ({ name, upstream }: InitialAgent): string => `/**
 * This installation of Pawl: the model servers it stands in front of, its agents, and where it keeps what it knows.
 * Everything else has a default: node_modules/pawl/docs/settings.md lists it.
 */
import { defineConfig } from 'pawl';
import agent from './agents/${name}.ts';

export default defineConfig({
  agents: [agent],

  // Servers that speak OpenAI's protocol: vLLM, SGLang, llama.cpp, a hosted one. The first is the default.
  upstreams: {
    main: {
      baseUrl: ${literal(upstream)},
      // key: process.env.UPSTREAM_KEY, // sent as the bearer token, where the server wants one
    },
  },

  // home: '.pawl', // database, journal, datasets and checkpoints: keep it out of version control
  // databaseUrl: process.env.DATABASE_URL, // a PostgreSQL of your own, 14 to 18, instead of the one in the home folder
  // host: '0.0.0.0', // others than this machine may call
  // port: 4700,
});
`;

const agentFile = ({
  name,
}: InitialAgent): string => `/** The agent ${name}: what is good, what a model may learn from, and what a better one must show before it serves. */
import { defineAgent, feedback, outcome, toolUse, weighted } from 'pawl';

export default defineAgent({
  name: ${literal(name)},

  // What a good conversation is: scorers and their weights. What could not be measured is left out of the mean. These need no
  // judge. Without a reward here it would be judge, faithfulness, context recall and feedback, less a penalty for latency, which
  // score little until the installation's settings name a judge (docs/score.md).
  reward: weighted({
    resolved: [0.5, outcome('resolved')], // POST /v1/outcomes {"trajectory": …, "name": "resolved", "value": true}, also days later
    tools: [0.3, toolUse()], // tool calls that fit their schema, bring no error and are not made twice
    feedback: [0.2, feedback()], // POST /v1/feedback {"turn": …, "vote": "up"}
  }),

  // What a model may learn from: conversations that everybody in them agreed to (\`pawl consent\`), and that were good.
  // Of these, only what at least five people asked the like of: a rare question may point at who asked it.
  curate: { minScore: 0.7, kAnonymity: 5 },

  // Training starts from a checkpoint folder of your own (\`pawl model\` makes and converts them). It asks for 5,000 points of five
  // task types (\`pawl curate check\`); a small team begins without, and takes these names out as it grows.
  train: {
    // base: 'models/base',
    without: ['points', 'types', 'balance'],
  },

  // What a candidate is judged by, beside the model that serves: cases that nothing is ever trained on.
  evaluate: { golden: 'golden.jsonl', attempts: 4 },

  // A better model gets its users in steps, each held for a day and watched; approval: 'human' asks a person first.
  deploy: { steps: [0.05, 0.25, 0.5, 1], approval: 'automatic' },
});
`;

/** One of each kind of expectation that most agents need; to be replaced with what users really ask. */
const cases = [
  {
    id: 'opening-hours',
    type: 'question',
    messages: [
      { role: 'system', content: 'You answer for a shop. It is open from 9 to 18 on weekdays. Be brief.' },
      { role: 'user', content: 'Until when are you open today? It is Tuesday.' },
    ],
    expect: { contains: '18' },
  },
  {
    id: 'no-promises',
    type: 'question',
    messages: [
      { role: 'system', content: 'You answer for a shop. Parcels take three days. Be brief.' },
      { role: 'user', content: 'I ordered a minute ago. How many days will it take?' },
    ],
    expect: { matches: { pattern: '\\b(3|three)\\b', flags: 'i' } },
  },
  {
    id: 'order-status',
    type: 'order',
    messages: [
      { role: 'system', content: 'You answer for a shop. Look an order up before you say anything about it.' },
      { role: 'user', content: 'Where is my order 4711?' },
    ],
    tools: [
      {
        type: 'function',
        function: {
          name: 'lookup_order',
          description: 'What is known about an order.',
          parameters: {
            type: 'object',
            properties: { order: { type: 'string', description: 'Its number.' } },
            required: ['order'],
          },
        },
      },
    ],
    expect: { tool: { name: 'lookup_order', arguments: { order: '4711' } } },
  },
];

const golden = cases.map((one) => `${JSON.stringify(one)}\n`).join('');
