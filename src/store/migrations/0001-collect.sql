-- Client keys, consent, and what the gateway records. Runs on PostgreSQL 14 to 18 as the owner of the database.

create table pawl.keys (
  id           uuid primary key,
  agent        text not null,
  name         text not null,
  hash         bytea not null unique,          -- SHA-256 of the token; the token itself is nowhere
  prefix       text not null,                  -- the first characters, so that people can tell keys apart
  origin       text not null default 'production'
               check (origin in ('production', 'shadow', 'simulation', 'evaluation', 'judge')),
  rate_limit   integer check (rate_limit > 0), -- requests per minute; null: no limit
  created_at   timestamptz not null default now(),
  revoked_at   timestamptz,
  last_used_at timestamptz
);

create table pawl.consent (
  agent        text not null,
  user_id      text not null,
  given_at     timestamptz,
  withdrawn_at timestamptz,
  primary key (agent, user_id)
);

-- What the user had said by the time `at`. A withdrawal stands until consent is given again.
create function pawl.consent_at(of_agent text, of_user text, at timestamptz) returns text
language sql stable as $$
  select coalesce((
    select case
      when c.withdrawn_at <= at then 'withdrawn'
      when c.given_at <= at then 'given'
      else 'unknown'
    end
    from pawl.consent c where c.agent = of_agent and c.user_id = of_user), 'unknown')
$$;

-- Gateways keep keys and consent in memory and listen for changes.
create function pawl.notify_keys() returns trigger language plpgsql as $$
begin
  perform pg_notify('pawl_keys', '');
  return null;
end $$;
create trigger keys_changed after insert or delete or update of agent, hash, origin, rate_limit, revoked_at
  on pawl.keys for each statement execute function pawl.notify_keys();

create function pawl.notify_consent() returns trigger language plpgsql as $$
begin
  perform pg_notify('pawl_consent', '');
  return null;
end $$;
create trigger consent_changed after insert or update or delete
  on pawl.consent for each statement execute function pawl.notify_consent();

-- One row per conversation: the sum of its turns. `day` is the UTC day of the turn that arrived first. A turn of an
-- earlier moment that arrives later can move started_at back, so day >= the day of started_at, at most a week apart.
-- `id` leads the key because a lookup knows the id and only a range of days.
create table pawl.trajectories (
  id                text not null,
  agent             text not null,
  day               date not null,
  user_id           text,
  origin            text not null,
  consent           text not null,
  started_at        timestamptz not null,
  ended_at          timestamptz not null,
  turns             integer not null,
  errors            integer not null,
  prompt_tokens     bigint not null,
  completion_tokens bigint not null,
  latency_ms        double precision not null,
  release           text not null,
  release_at        timestamptz not null,      -- start of the turn that `release` comes from
  primary key (id, agent, day)
) partition by range (day);
create index trajectories_by_origin on pawl.trajectories (origin, started_at desc, agent desc, id desc);
create index trajectories_by_agent on pawl.trajectories (agent, origin, started_at desc, id desc);
create index trajectories_by_user on pawl.trajectories (user_id, started_at desc) where user_id is not null;
create index trajectories_by_release on pawl.trajectories (release, started_at desc);
create index trajectories_with_errors on pawl.trajectories (started_at desc) where errors > 0;

-- One row per model call.
create table pawl.turns (
  id                uuid not null,
  day               date not null,             -- UTC day of started_at
  agent             text not null,
  trajectory        text not null,
  user_id           text,
  origin            text not null,
  endpoint          text not null,
  keys              text[] not null,
  started_at        timestamptz not null,
  first_token_ms    double precision,
  latency_ms        double precision not null,
  upstream          text not null,
  release           text not null,
  model             text not null,
  status            text not null,
  http_status       integer not null,
  error             text,
  attempts          integer not null,
  stream            boolean not null,
  prompt_tokens     bigint,
  completion_tokens bigint,
  reasoning_tokens  bigint,
  thread_key        text,
  request           jsonb not null,
  choices           jsonb not null,            -- without the token arrays, which are in the columns below
  usage             jsonb,
  redactions        jsonb not null,
  prompt_token_ids  integer[],
  token_ids         integer[],                 -- of all choices, one after the other
  logprobs          real[],
  token_counts      integer[],                 -- per choice: number of token ids, number of logprobs; -1: none given
  primary key (id, day)
) partition by range (day);
create index turns_by_trajectory on pawl.turns (trajectory, agent, started_at);
create index turns_by_start on pawl.turns using brin (started_at);

-- Feedback and outcomes. They come early, late and twice; the newest `at` of an identity stands.
create table pawl.signals (
  agent       text not null,
  identity    text not null,
  id          uuid not null,
  target_kind text not null check (target_kind in ('turn', 'trajectory', 'key')),
  target_id   text not null,
  kind        text not null check (kind in ('feedback', 'outcome')),
  name        text not null,
  value       double precision,
  unit        text,
  user_id     text,
  comment     text,
  correction  text,
  at          timestamptz not null,
  received_at timestamptz not null,
  primary key (agent, identity)
);
create index signals_by_target on pawl.signals (target_id, target_kind, agent);
create index signals_by_received on pawl.signals using brin (received_at);

-- Business keys (`order:1234`) that agents attached to what they did.
create table pawl.trajectory_keys (
  agent       text not null,
  key         text not null,
  target_kind text not null check (target_kind in ('trajectory', 'turn')),
  target_id   text not null,
  at          timestamptz not null,
  primary key (agent, key, target_kind, target_id)
);
create index trajectory_keys_by_target on pawl.trajectory_keys (target_id, target_kind, agent);
create index trajectory_keys_by_at on pawl.trajectory_keys using brin (at);

-- What was lost on the way here, as the journal counted it.
create table pawl.losses (
  id     bigint generated always as identity primary key,
  at     timestamptz not null default now(),
  source text not null,
  reason text not null,
  count  bigint not null check (count > 0)
);

-- lz4 packs the large columns several times faster than the built-in method; not every server is built with it.
do $$
declare large text;
begin
  foreach large in array array['request', 'choices', 'prompt_token_ids', 'token_ids', 'logprobs'] loop
    execute format('alter table pawl.turns alter column %I set compression lz4', large);
  end loop;
exception when feature_not_supported or invalid_parameter_value then null;
end $$;
