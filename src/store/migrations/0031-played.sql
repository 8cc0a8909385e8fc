-- What a release answered to a case, so that it is not played again (store/played.ts), and whether a release fits where it
-- is to serve (store/compatibility.ts).

create table pawl.played (
  key        text primary key,                 -- hash of all that decides the answers
  agent      text not null,
  release    text not null,
  attempts   jsonb not null,                   -- as evaluate/match.ts has them
  at         timestamptz not null
);
create index played_by_age on pawl.played (at);

create table pawl.compatibility (
  agent      text not null,
  release    text not null,
  verdict    text not null check (verdict in ('pass', 'fail', 'inconclusive', 'unmeasured')),
  body       jsonb not null,                   -- as evaluate/compatibility.ts describes it
  at         timestamptz not null,
  primary key (agent, release)
);
