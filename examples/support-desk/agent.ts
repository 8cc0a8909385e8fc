/** The support desk as an agent: what is good, where it can practise, and a week in minutes instead of weeks. */
import { fileURLToPath } from 'node:url';
import { defineAgent } from 'pawl';
import { broad } from './corpus.ts';
import { supportDesk } from './desk.ts';

const beside = (name: string) => fileURLToPath(new URL(name, import.meta.url));

export default defineAgent({
  name: 'support-desk',
  environment: supportDesk,
  // Its customers are simulated, and this agent alone may learn from such.
  curate: { on: 'simulation' },
  // Turns begin when the demo says so.
  loop: { every: null, after: null },
  train: {
    base: beside('model'),
    recipe: 'auto',
    steps: 60,
    replay: {
      share: 0.1,
      examples: (seed) => broad('train', 400, seed).map(({ messages, kind }) => ({ messages, taskType: kind })),
    },
  },
  evaluate: { golden: beside('golden.jsonl') },
  // A real deployment holds a step for a day and asks for hundreds of calls: leave these out for that.
  // Nobody is there to be asked either, so a candidate that is not clearly better goes nowhere.
  deploy: { holdSeconds: 2, patienceSeconds: 180, minTurns: 20, minUnits: 8, latencyRatio: 3, notPassed: 'refuse' },
});
