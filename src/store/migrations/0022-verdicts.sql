-- What judges said, and what asking them cost.

-- One row per thing asked: `key` is the hash of content, prompt and model. Of the conversation nothing is kept but hashes; what the
-- judge wrote is redacted like everything else. The row goes with the conversation it was made for.
create table pawl.verdicts (
  key        text primary key,
  agent      text not null,
  trajectory text not null,
  day        date not null,
  prompt     text not null,
  model      text not null,
  value      double precision check (value between 0 and 1), -- null: it could not be told, or there was no verdict
  reason     text not null,
  details    jsonb not null default '[]',
  failures   integer not null default 0,       -- above 0: no verdict yet, asked that often in vain
  at         timestamptz not null
);
create index verdicts_by_trajectory on pawl.verdicts (agent, trajectory);
create index verdicts_by_day on pawl.verdicts (day);

create table pawl.judging (
  day               date not null,             -- UTC, by the database's clock
  agent             text not null,
  upstream          text not null,
  model             text not null,
  calls             bigint not null,
  prompt_tokens     bigint not null,
  completion_tokens bigint not null,
  money             double precision not null,
  primary key (day, agent, upstream, model)
);
