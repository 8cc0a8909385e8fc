/** The agent of agent.ts as an environment: where it is, what its tasks are, and what its answers are worth. */
import { agentEndpoint, defineAgent } from 'pawl';

const capitals = { France: 'Paris', Italy: 'Rome', Japan: 'Tokyo', Peru: 'Lima', Kenya: 'Nairobi', Cuba: 'Havana' };
type Country = keyof typeof capitals;

export const desk = agentEndpoint({
  name: 'capitals',
  url: process.env.AGENT_URL ?? 'http://127.0.0.1:4800',
  types: {
    capital: (random) => {
      const country = random.pick(Object.keys(capitals) as Country[]);
      return { question: `The capital of ${country}?`, capital: capitals[country] };
    },
  },
  input: ({ data }) => ({ question: data.question }),
  grade: ({ task, answer }) => ({
    reward: answer.includes(task.data.capital) ? 1 : answer.length > 0 && answer.length < 20 ? 0.1 : 0,
    reasons: answer.includes(task.data.capital) ? [] : [`${task.data.capital}, not ${answer.slice(0, 40)}`],
  }),
  limits: { turns: 4, tokensPerTurn: 16, tokens: 512, seconds: 60 },
});

export default defineAgent({
  name: 'capitals',
  environment: desk,
  train: { base: 'model', recipe: 'grpo', tasks: 8, validationTasks: 0 },
});
