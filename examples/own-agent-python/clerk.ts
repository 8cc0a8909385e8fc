/** The Python agent beside this file, and the tasks it practises on: sums that a program can check. */
import { agentProcess, defineAgent } from 'pawl';

export const clerk = agentProcess({
  name: 'clerk',
  command: [process.env.PYTHON ?? 'python3', 'agent.py'],
  cwd: import.meta.dirname,
  types: {
    sum: (random) => {
      const [a, b] = [random.integer(1, 99), random.integer(1, 99)];
      return { question: `What is ${a} + ${b}?`, sum: a + b };
    },
  },
  input: ({ data }) => ({ question: data.question }),
  grade: ({ task, answer }) => answer === String(task.data.sum),
  limits: { turns: 4, seconds: 60 },
});

export default defineAgent({ name: 'clerk', environment: clerk, train: { base: 'model', recipe: 'grpo' } });
