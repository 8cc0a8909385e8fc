/** Who judges, and what that costs, day by day. */
import { useAnswer } from '../answer.ts';
import { ask } from '../client.ts';
import { Command } from '../parts/command.tsx';
import { Counted } from '../parts/counted.tsx';
import { Figure, Figures } from '../parts/figure.tsx';
import { Panel } from '../parts/layout.tsx';
import { Asked, Empty } from '../parts/states.tsx';
import { type Column, Plain } from '../parts/table.tsx';
import { count, money, pawl, short } from '../words.ts';

const days = 30;
const read = (signal: AbortSignal) => ask('get', '/api/judge', { query: { days } }, signal);
type Day = Awaited<ReturnType<typeof read>>['spending'][number];

const columns: readonly Column<Day>[] = [
  { name: 'Day', grow: 1.3, cell: ({ day }) => day },
  { name: 'Model', grow: 1.6, isWide: true, cell: ({ model }) => <span dir="auto">{model}</span> },
  { name: 'Calls', isNumber: true, cell: ({ calls }) => count(calls) },
  {
    ...{ name: 'Tokens', isNumber: true, grow: 1.4 },
    cell: ({ promptTokens, completionTokens }) => `${short(promptTokens)} → ${short(completionTokens)}`,
  },
  { name: 'Cost', isNumber: true, cell: ({ money: cost }) => money(cost) },
];

export function Judging({ agent }: { readonly agent: string }) {
  const judging = useAnswer('judge', read, { topics: ['scores'] });
  return (
    <Panel title="What judging costs" note={`${days} days, UTC`}>
      <Asked of={judging} rows={6}>
        {({ agents, verdicts, failed, budget, moneyToday, spending, countedAt }) => {
          const judge = agents.find((one) => one.agent === agent)?.judge ?? null;
          const mine = spending.filter((one) => one.agent === agent);
          const calls = mine.reduce((sum, one) => sum + one.calls, 0);
          const cost = mine.reduce((sum, one) => sum + one.money, 0);
          return (
            <>
              <Figures>
                <Figure
                  label="Judge"
                  value={<span dir="auto">{judge?.model ?? 'none'}</span>}
                  note={judge === null ? 'parts that ask one measure nothing' : `at ${judge.upstream}`}
                />
                <Figure
                  label="Today"
                  value={money(moneyToday)}
                  note={budget.day === null ? 'no limit a day' : `of ${money(budget.day)}`}
                />
                <Figure label="A call" value={calls === 0 ? '–' : money(cost / calls)} note={`${count(calls)} calls`} />
                <Figure
                  label="Verdicts kept"
                  value={count(verdicts)}
                  note={failed === 0 ? 'not asked for again' : `${count(failed)} asked for in vain`}
                />
              </Figures>
              <Plain
                label="What judging costs"
                rows={mine}
                columns={columns}
                idOf={({ day, model, upstream }) => `${day} ${upstream} ${model}`}
                empty={<Empty title="No judge was asked." />}
              />
              <Counted at={countedAt} />
            </>
          );
        }}
      </Asked>
      <Command line={pawl('judge', 'status', ['--days', String(days)])} />
    </Panel>
  );
}
