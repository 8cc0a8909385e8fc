-- Users who asked to be forgotten, and what is forgotten by its age.

-- One row per request; it is worked on until it is done, by whoever finds it open. It stays, because journals deliver late:
-- what began before `at` and is this user's is dropped on arrival.
create table pawl.erasures (
  id          text primary key,
  user_id     text not null,                   -- the keyed hash, as everywhere
  agent       text,                            -- null: every agent's
  at          timestamptz not null,
  actor       text not null,
  status      text not null check (status in ('erasing', 'sweeping', 'done')),
  counts      jsonb not null default '{}',
  datasets    jsonb not null default '[]',
  sweep_after timestamptz,                     -- when it can go on, where what is left is too young to be swept
  problem     text,                            -- why it waits, where it does
  finished_at timestamptz
);
create index erasures_by_at on pawl.erasures (at);

-- What was erased, by the SHA-256 of its id: trajectories, turns and siblings. `name` is the id of a trajectory of which
-- something may still be stored; null: nothing is.
create table pawl.erased (
  agent   text not null,
  hash    bytea not null,
  day     date not null,                       -- of the turn that made it this user's
  erasure text not null references pawl.erasures,
  name    text,
  primary key (agent, hash, day)
);
create index erased_of on pawl.erased (erasure) where name is not null;

create function pawl.id_hash(id text) returns bytea language sql immutable parallel safe as $$
  select sha256(convert_to(id, 'UTF8'))
$$;

-- Whose words a dataset's row holds: everybody's who took part in the conversation or wrote a correction in it. Datasets may
-- outlive the conversations they were made of, and their people must be found all the same.
alter table pawl.dataset_rows add column users text[] not null default '{}';
-- In two steps, so that only the days of the conversation are looked at.
create function pawl.people_in(of_agent text, of_trajectory text, of_day date) returns text[] language plpgsql stable as $$
declare
  began timestamptz;
  ended timestamptz;
  turns text[];
  people text[];
begin
  select t.started_at, t.ended_at into began, ended from pawl.trajectories t
  where t.id = of_trajectory and t.agent = of_agent and t.day = of_day;
  select array_agg(x.id), array_agg(x.user_id) into turns, people from pawl.turns x
  where x.trajectory = of_trajectory and x.agent = of_agent and x.started_at between began and ended
    and x.day between (began at time zone 'UTC')::date and (ended at time zone 'UTC')::date;
  return array(
    select unnest(people) as person
    union
    select s.user_id from pawl.signals s
    where s.agent = of_agent and s.correction <> '' and (s.target_kind = 'trajectory' and s.target_id = of_trajectory
      or s.target_kind = 'turn' and s.target_id = any (turns))
    except select null
    order by person);
end $$;
update pawl.dataset_rows set users = pawl.people_in(agent, trajectory, day);

-- A dataset that is no more: when, why, and which one has its other rows.
alter table pawl.datasets
  add column gone_at timestamptz,
  add column gone_because text,
  add column replaced_by text references pawl.datasets;

-- What was forgotten by its age, run by run.
create table pawl.retention_runs (
  id          bigint generated always as identity primary key,
  at          timestamptz not null,
  actor       text not null,
  settings    jsonb not null,
  result      jsonb,
  finished_at timestamptz                      -- null: under way, or interrupted
);

-- Nothing is forgotten on its own in the first week, so that whoever comes from a Pawl that kept everything can say otherwise.
alter table pawl.installation add column forgets_from timestamptz not null default now() + interval '7 days';
