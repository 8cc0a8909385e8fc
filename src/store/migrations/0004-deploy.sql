-- Evaluations, what can answer traffic, what is on its way there, and who did what.

create table pawl.reports (
  id         text primary key,
  agent      text not null,
  baseline   text not null,
  candidate  text not null,
  suite      text not null,
  verdict    text not null check (verdict in ('pass', 'fail', 'inconclusive', 'unmeasured')),
  body       jsonb not null,                   -- the whole report as evaluate/report.ts describes it
  created_at timestamptz not null
);
create index reports_by_agent on pawl.reports (agent, created_at desc);

create table pawl.releases (
  id         text primary key,
  agent      text not null,
  name       text not null,
  upstream   text not null,
  model      text not null,
  checkpoint text,
  prompt     text,
  sampling   jsonb not null,
  run        text,
  report     text,
  dataset    text,
  created_at timestamptz not null,
  unique (agent, name)
);

-- Which release answers an agent's traffic where no rollout says otherwise.
create table pawl.routes (
  agent      text primary key,
  release    text not null references pawl.releases,
  aliases    text[] not null default '{}',     -- model names, besides the agent's own, that are routed
  changed_at timestamptz not null
);

create table pawl.rollouts (
  id         text primary key,
  agent      text not null,
  baseline   text not null references pawl.releases,
  candidate  text not null references pawl.releases,
  report     text,
  phase      text not null check (phase in ('waiting', 'canary', 'paused', 'promoted', 'rolled-back')),
  step       integer not null,
  settings   jsonb not null,
  reasons    jsonb not null,
  version    integer not null,                 -- grows by one with each change; whoever saves an old one is refused
  created_at timestamptz not null,
  started_at timestamptz,
  step_since timestamptz,
  ended_at   timestamptz,
  check (baseline <> candidate)
);
create unique index rollouts_one_open on pawl.rollouts (agent) where phase in ('waiting', 'canary', 'paused');
create index rollouts_by_created on pawl.rollouts (created_at desc);

create table pawl.audit (
  n        bigint primary key,                 -- 1, 2, 3 … without gaps
  at       timestamptz not null,
  agent    text not null,
  actor    text not null,
  event    text not null,
  subject  text not null,
  details  text not null,                      -- JSON as text: the hash covers every character of it
  previous text not null,
  hash     text not null
);
create index audit_by_subject on pawl.audit (subject, n desc);
create index audit_by_event on pawl.audit (event, n desc);
create index audit_by_at on pawl.audit (at desc);

create function pawl.refuse_change() returns trigger language plpgsql as $$
begin
  raise exception 'The audit log only grows; its rows are neither changed nor removed.';
end $$;
create trigger audit_only_grows before update or delete or truncate
  on pawl.audit for each statement execute function pawl.refuse_change();

-- Gateways keep routes in memory and listen for changes.
create function pawl.notify_routes() returns trigger language plpgsql as $$
begin
  perform pg_notify('pawl_routes', '');
  return null;
end $$;
create trigger routes_changed after insert or update or delete
  on pawl.routes for each statement execute function pawl.notify_routes();
create trigger rollouts_changed after insert or update or delete
  on pawl.rollouts for each statement execute function pawl.notify_routes();

-- The release that was picked for a turn, where it failed before its first byte and another answered.
alter table pawl.turns add column assigned text;
create index turns_by_release on pawl.turns (agent, release, started_at) include (origin, status, http_status, latency_ms);
create index turns_by_assigned on pawl.turns (agent, assigned, started_at) where assigned is not null;
