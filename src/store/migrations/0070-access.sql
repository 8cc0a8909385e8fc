-- Who may look at the dashboard and use the API besides the holder of the admin token, and the sessions of browsers.
create table pawl.access (
  id           uuid primary key,
  name         text not null,                  -- of the person; stands in the audit log
  role         text not null check (role in ('viewer', 'reviewer', 'operator', 'admin')),
  hash         bytea not null unique,          -- SHA-256 of the token; the token itself is nowhere
  prefix       text not null,
  created_at   timestamptz not null default now(),
  revoked_at   timestamptz,
  last_used_at timestamptz
);
create table pawl.sessions (
  hash         bytea primary key,              -- SHA-256 of what the cookie holds
  access       uuid references pawl.access on delete cascade, -- null: made with the admin token
  admin        text,                           -- then its hash, in hex: another admin token ends the session
  created_at   timestamptz not null,
  last_used_at timestamptz not null,
  check ((access is null) <> (admin is null))
);
create index sessions_by_age on pawl.sessions (created_at);
