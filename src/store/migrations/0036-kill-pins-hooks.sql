-- The kill switch of an agent: while it is pulled one release answers everybody and no rollout begins.
alter table pawl.routes add column killed jsonb; -- { by, reason, at }

-- Who gets one release whatever is rolled out: a client key, or a user by the hash of their id.
create table pawl.pins (
  agent   text not null,
  kind    text not null check (kind in ('key', 'user')),
  value   text not null,
  release text not null references pawl.releases,
  by      text not null,
  at      timestamptz not null,
  primary key (agent, kind, value)
);
create trigger pins_changed after insert or update or delete
  on pawl.pins for each statement execute function pawl.notify_routes();

-- What was told to webhooks: each is tried until it is taken, or too old to matter.
create table pawl.hook_calls (
  n          bigint generated always as identity primary key,
  audit      bigint not null,                  -- the row of the audit log it tells of
  hook       text not null,                    -- its name in the settings
  attempts   integer not null default 0,
  next_at    timestamptz not null,
  ended_at   timestamptz,                      -- taken, or given up
  problem    text,
  unique (audit, hook)
);
create index hook_calls_open on pawl.hook_calls (next_at) where ended_at is null;
