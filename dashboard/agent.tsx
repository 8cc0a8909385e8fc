/** Whose loop is shown: the agent of the address, or the first of the settings. */
import { createContext, type ReactNode, useContext } from 'react';
import { useAnswer } from './answer.ts';
import { ask } from './client.ts';
import { Asked } from './parts/states.tsx';
import { usePlace } from './router.tsx';

const Context = createContext<{ readonly agent: string; readonly agents: readonly string[] } | null>(null);

export function useAgent(): string {
  return useAgents().agent;
}

export function useAgents() {
  const found = useContext(Context);
  if (found === null) throw new Error('There is no agent above this part.');
  return found;
}

export function OfAgent({ children }: { readonly children: ReactNode }) {
  const asked = usePlace().query.get('agent');
  const found = useAnswer('agents', (signal) => ask('get', '/api/overview', {}, signal));
  return (
    <Asked of={found}>
      {({ agents }) => <Context value={{ agents, agent: asked ?? agents[0] ?? '' }}>{children}</Context>}
    </Asked>
  );
}
