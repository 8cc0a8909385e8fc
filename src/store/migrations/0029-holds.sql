-- A person looked at a key whose scores of a kind of task had shifted, and lets what came until then be learned from.
create table pawl.shift_releases (
  agent      text not null,
  client_key text not null,
  task_type  text not null,
  at         timestamptz not null,
  actor      text not null,
  reason     text,
  primary key (agent, client_key, task_type, at)
);

-- What must not be removed, whoever asks: neither by an erasure nor by its age.
create table pawl.legal_holds (
  id          text primary key,
  user_id     text not null,
  agent       text,                            -- null: every agent's
  reason      text not null,
  actor       text not null,
  at          timestamptz not null,
  released_at timestamptz
);
create index legal_holds_open on pawl.legal_holds (user_id) where released_at is null;

-- How somebody voted before (curate/trust.ts), a page of conversations at a time.
create index signals_by_user on pawl.signals (user_id, agent) where user_id is not null;
