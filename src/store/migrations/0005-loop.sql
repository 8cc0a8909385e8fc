-- One row per turn of an agent's loop: which stage it is at, and what the stages before it left for the next.
create table pawl.loop_turns (
  agent      text not null,
  number     integer not null check (number > 0),
  seed       bigint not null,
  done       text[] not null default '{}',      -- stages that are finished, in order
  state      jsonb not null default '{}',
  started_at timestamptz not null,
  ended_at   timestamptz,
  primary key (agent, number)
);
