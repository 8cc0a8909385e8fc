-- What conversations were worth, and what was chosen to learn from.

-- A reward spec by the hash of what it says. Scores point here, so that a weight can be looked up years later.
create table pawl.reward_specs (
  version text primary key,
  parts   jsonb not null,
  at      timestamptz not null
);

-- One row per trajectory and spec. `day` is the trajectory's: an id may come back on a later day as another conversation.
-- `evidence` is a hash of the turns and signals it was computed from; when those change, the row is computed again.
create table pawl.scores (
  trajectory text not null,
  agent      text not null,
  day        date not null,
  spec       text not null references pawl.reward_specs,
  evidence   text not null,
  total      double precision check (total between 0 and 1), -- null: nothing could be measured
  measured   double precision not null check (measured between 0 and 1),
  parts      jsonb not null,
  turns      jsonb not null,
  at         timestamptz not null,
  primary key (trajectory, agent, day, spec)
);
create index scores_by_day on pawl.scores (agent, spec, day);

-- Immutable. The rows themselves are in <home>/datasets/<id>.jsonl; `hash` is the SHA-256 of that file.
create table pawl.datasets (
  id         text primary key,
  agent      text not null,
  version    integer not null check (version > 0),
  created_at timestamptz not null,
  since      timestamptz not null,
  until      timestamptz not null,
  spec       text not null references pawl.reward_specs,
  settings   jsonb not null,
  seed       bigint not null,
  funnel     jsonb not null,
  task_types jsonb not null,
  rows       integer not null check (rows >= 0),
  hash       text not null,
  key        text not null,                    -- hash of everything but the times: the same selection is not made twice
  unique (agent, version),
  unique (agent, key)
);

-- Which conversations are in which dataset, both ways.
create table pawl.dataset_rows (
  dataset    text not null references pawl.datasets on delete cascade,
  position   integer not null,
  agent      text not null,
  trajectory text not null,
  day        date not null,
  score      double precision not null,
  primary key (dataset, position)
);
create index dataset_rows_by_trajectory on pawl.dataset_rows (trajectory, agent);
