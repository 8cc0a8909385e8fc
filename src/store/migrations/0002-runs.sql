-- Training runs: how far each is, the figures of every step, and the checkpoints it can resume from.

create table pawl.runs (
  id           text primary key,
  agent        text not null,
  recipe       text not null,
  settings     jsonb not null,
  base         text not null,
  folder       text not null,
  seed         bigint not null,
  steps        integer not null,
  step         integer not null,
  status       text not null check (status in ('running', 'paused', 'stopped', 'finished', 'failed')),
  reason       text,
  budget       jsonb not null,
  spent        jsonb not null,
  request      text check (request in ('pause', 'stop')),
  owner        text,                           -- host:pid of the process that runs it
  heartbeat_at timestamptz not null,
  created_at   timestamptz not null
);
create index runs_by_created on pawl.runs (created_at desc);

create table pawl.run_steps (
  run        text not null references pawl.runs on delete cascade,
  step       integer not null,
  stage      text not null,
  stage_step integer not null,
  "values"   jsonb not null,                   -- metric name → number; NaN and infinities as text, which JSON lacks
  task_types jsonb,
  primary key (run, step)
);

create table pawl.run_checkpoints (
  run        text not null references pawl.runs on delete cascade,
  folder     text not null,
  step       integer not null,
  kind       text not null check (kind in ('stage', 'step')),
  stage      integer not null,
  state      jsonb,
  validation double precision,
  created_at timestamptz not null default now(),
  primary key (run, folder)
);
