-- Other answers to a turn's prompt, asked for after the user had theirs (gateway/explore.ts). A table of its own: what counts,
-- scores or threads turns must never meet them. The prompt is the parent's; whose they are and who agreed, too.
create table pawl.siblings (
  parent            uuid not null,             -- the turn whose prompt was asked again
  id                uuid not null,
  day               date not null,             -- UTC day of the parent, with which they are forgotten
  agent             text not null,
  origin            text not null,
  started_at        timestamptz not null,
  latency_ms        double precision not null,
  upstream          text not null,
  release           text not null,
  model             text not null,
  temperature       double precision not null,
  top_p             double precision,          -- null: not set
  choices           jsonb not null,
  prompt_tokens     bigint,
  completion_tokens bigint,
  redactions        jsonb not null,
  primary key (parent, id)
);
create index siblings_by_day on pawl.siblings (day);

-- What exploring took of each day's and hour's allowance, before the answers are there: a process that dies has spent it.
create table pawl.exploration (
  agent         text not null,
  day           date not null,                 -- UTC, by the database's clock
  asked         integer not null,
  money         double precision not null,
  hour          smallint not null,             -- the latest in which something was asked
  asked_in_hour integer not null,
  primary key (agent, day)
);

alter table pawl.keys drop constraint keys_origin_check;
alter table pawl.keys add constraint keys_origin_check
  check (origin in ('production', 'exploration', 'shadow', 'simulation', 'evaluation', 'judge'));
