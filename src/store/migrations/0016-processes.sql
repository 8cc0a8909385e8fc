-- Who works on this database. A process says every few seconds that it is there; one that ends in order takes its row away, and
-- one that was killed is forgotten after an hour. The id names the machine and the data folder, so that one that starts again is
-- the same.
alter table pawl.gateways rename to processes;
alter table pawl.processes
  alter column keys_read_at drop not null,   -- gateways: every key is known as it was then
  add column recorded_at timestamptz,         -- gateways: all that was answered until then is in the database
  add column roles text[] not null default '{gateway}',
  add column host text not null default '',
  add column pid integer not null default 0,
  add column version text not null default '',
  add column address text,                    -- where the others reach it
  add column problems text[] not null default '{}',
  add column doing jsonb not null default '[]',
  add column started_at timestamptz not null default now();

-- Who does what only one may do at a time. Each new leader has the next term; what it writes is refused once another leads.
create table pawl.leaders (
  name text primary key,
  term bigint not null,
  process text not null,
  since timestamptz not null default now()
);

-- What is done now and then, once over all processes.
create table pawl.jobs (
  name text primary key,
  ended_at timestamptz,
  process text,
  failures integer not null default 0,
  failed_at timestamptz,
  problem text
);
