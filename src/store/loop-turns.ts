/** Turns of the loop in Postgres: what makes it go on where it was. The shape is loop.ts's; this file maps it to rows. */
import type { LoopState, LoopTurn, StageName } from '../loop/turn.ts';
import { type Lead, lostLead } from './lead.ts';
import { type Store, storeError } from './postgres.ts';

type Row = {
  agent: string;
  number: number;
  seed: number;
  done: StageName[];
  state: LoopState;
  started_at: Date;
  ended_at: Date | null;
};

const turnOf = ({ started_at, ended_at, ...row }: Row): LoopTurn => ({
  ...row,
  startedAt: started_at.getTime(),
  endedAt: ended_at?.getTime() ?? null,
});

const columns = 'agent, number, seed, done, state, started_at, ended_at';

/** Newest first. */
export const listLoopTurns = async (store: Store, agent: string, limit = 50): Promise<LoopTurn[]> => {
  const { rows } = await store.pool
    .query<Row>(`select ${columns} from pawl.loop_turns where agent = $1 order by number desc limit $2`, [agent, limit])
    .catch((error) => {
      throw storeError(error, 'Reading the turns of the loop');
    });
  return rows.map(turnOf);
};

/** Writes the turn as it is now, if the lead still stands; the same turn again replaces it. */
export const saveLoopTurn = async (store: Store, turn: LoopTurn, lead: Lead): Promise<void> => {
  const { agent, number, seed, done, state, startedAt, endedAt } = turn;
  const { rowCount } = await store.pool
    .query(
      `with held as (select 1 from pawl.leaders where name = $8 and term = $9 for share)
       insert into pawl.loop_turns (${columns}) select $1, $2, $3, $4, $5, $6, $7 from held
       on conflict (agent, number) do update
       set done = excluded.done, state = excluded.state, ended_at = excluded.ended_at`,
      [
        agent,
        number,
        seed,
        done,
        JSON.stringify(state),
        new Date(startedAt),
        endedAt === null ? null : new Date(endedAt),
        lead.name,
        lead.term,
      ],
    )
    .catch((error) => {
      throw storeError(error, `Saving turn ${number} of the loop`);
    });
  if (rowCount === 0) throw lostLead(lead);
};
