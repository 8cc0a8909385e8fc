-- Gateways that have read the keys, and as of when: a revocation is in force once each of them has read them since.
create table pawl.gateways (
  id text primary key,
  keys_read_at timestamptz not null,
  seen_at timestamptz not null default now()
);
