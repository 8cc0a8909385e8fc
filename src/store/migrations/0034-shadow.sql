-- Shadow traffic: a phase before the first step, and what its comparisons found. No words are kept here: what both said is with
-- their turns.
alter table pawl.rollouts drop constraint rollouts_phase_check;
alter table pawl.rollouts add constraint rollouts_phase_check
  check (phase in ('waiting', 'shadow', 'canary', 'paused', 'promoted', 'rolled-back'));
drop index pawl.rollouts_one_open;
create unique index rollouts_one_open on pawl.rollouts (agent) where phase in ('waiting', 'shadow', 'canary', 'paused');
update pawl.rollouts
set settings = settings || '{"firstByteSeconds": 5,
  "shadow": {"share": 0, "holdSeconds": 0, "minTurns": 1, "perMinute": 60, "most": 10000, "maxTokens": 1024}}'
where not settings ? 'shadow';

create table pawl.shadows (
  id               uuid primary key,           -- the candidate's turn
  parent           uuid not null,              -- the turn that the user got
  rollout          text not null references pawl.rollouts on delete cascade,
  agent            text not null,
  at               timestamptz not null,
  failed           boolean not null,           -- no answer came
  agreed           boolean,                    -- the same tool calls, or words on both sides; null: it failed
  similarity       double precision,           -- of the words; null where one side has none
  baseline_ms      double precision not null,
  candidate_ms     double precision not null,
  baseline_tokens  bigint,
  candidate_tokens bigint
);
create index shadows_by_rollout on pawl.shadows (rollout, at);
