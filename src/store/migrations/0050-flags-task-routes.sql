-- Switches of an agent that a person turned; what is not here is on.
create table pawl.flags (
  agent   text not null,
  name    text not null,
  is_on   boolean not null,
  by      text not null,
  reason  text not null,
  at      timestamptz not null,
  primary key (agent, name)
);
create trigger flags_changed after insert or update or delete
  on pawl.flags for each statement execute function pawl.notify_routes();

-- Which types of task another release answers than the one that serves, and what a rollout showed for it. It holds as long as that one serves.
create table pawl.task_routings (
  agent   text primary key,
  rollout text not null,
  serving text not null references pawl.releases,
  other   text not null references pawl.releases,
  types   jsonb not null,                      -- [{ type, users, difference, z, bound }]
  at      timestamptz not null
);
create trigger task_routings_changed after insert or update or delete
  on pawl.task_routings for each statement execute function pawl.notify_routes();
