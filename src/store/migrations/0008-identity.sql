-- Whose an installation's users are, and what a client key may do.

-- One row: the secret that user ids are hashed with. It belongs to the database, because every home on it must hash alike.
create table pawl.installation (
  one             boolean primary key default true check (one),
  secret          text not null check (length(secret) >= 32),
  users_hashed_at timestamptz,                 -- when ids that were stored as they came had been hashed; null: not yet
  swept_until     timestamptz                  -- signals received up to here were looked at by store/unmatched.ts
);

-- collect/person.ts's hashedId: HMAC-SHA-256 with the key already combined with the two paddings, in 27 letters of base64url.
create function pawl.hashed_id(id text, inner_key bytea, outer_key bytea) returns text
language sql immutable parallel safe as $$
  select 'u_' || left(translate(encode(
    sha256(outer_key || sha256(inner_key || convert_to(id, 'UTF8'))), 'base64'), '+/', '-_'), 27)
$$;

-- Keys from before there were scopes keep all of them; a new key always says its own.
alter table pawl.keys add column scopes text[] not null default '{call,feedback,outcomes,read}'
  check (scopes <@ array['call', 'feedback', 'outcomes', 'read'] and cardinality(scopes) > 0);
alter table pawl.keys alter column scopes drop default;
drop trigger keys_changed on pawl.keys;
create trigger keys_changed after insert or delete or update of agent, hash, origin, rate_limit, revoked_at, scopes
  on pawl.keys for each statement execute function pawl.notify_keys();

-- Which key a signal came with. Null: from before this was kept.
alter table pawl.signals add column key_id text;

-- Whether an agent has what a signal or business key points at. A turn's id (UUIDv7) says in which day it lies.
create function pawl.is_there(of_agent text, kind text, target text) returns boolean language plpgsql stable as $$
begin
  if kind = 'trajectory' then
    return exists (select 1 from pawl.trajectories t where t.id = target and t.agent = of_agent);
  elsif kind = 'turn' then
    return target ~ '^[0-9a-f]{8}-([0-9a-f]{4}-){3}[0-9a-f]{12}$' and exists (
      select 1 from pawl.turns t where t.id = target::uuid and t.agent = of_agent and t.day = (to_timestamp(
        ('x' || substr(target, 1, 8) || substr(target, 10, 4))::bit(48)::bigint / 1000.0) at time zone 'UTC')::date);
  end if;
  return exists (
    select 1 from pawl.trajectory_keys k where k.agent = of_agent and k.key = target
      and pawl.is_there(of_agent, k.target_kind, k.target_id));
end $$;
