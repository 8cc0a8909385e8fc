/** The support desk as an agent: what is good, where it can practise, and a week in minutes instead of weeks. */
import { fileURLToPath } from 'node:url';
import { defineAgent, feedback, outcome, toolUse, weighted } from 'pawl';
import { broad } from './corpus.ts';
import { supportDesk } from './desk.ts';

const beside = (name: string) => fileURLToPath(new URL(name, import.meta.url));

export default defineAgent({
  name: 'support-desk',
  environment: supportDesk,
  // What happened counts most, how it was done next, what users said last.
  reward: weighted({ resolved: [0.5, outcome('resolved')], tools: [0.3, toolUse()], feedback: [0.2, feedback()] }),
  // Its customers are simulated, and this agent alone may learn from such. There is nobody whom a rare question could give away,
  // and they say much the same in much the same words: leave the last two out for real users.
  curate: { on: 'simulation', kAnonymity: 1, nearDuplicate: 1 },
  // Turns begin when the demo says so.
  loop: { every: null, after: null },
  train: {
    // 240 customers are no 5,000 points: a real team collects more, and leaves this out.
    without: ['points'],
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
  deploy: {
    ...{ holdSeconds: 2, patienceSeconds: 180, minTurns: 20, minUnits: 8, latencyRatio: 3, notPassed: 'refuse' },
    promotion: { rule: 'checks' },
    shadow: { share: 0 },
  },
});
