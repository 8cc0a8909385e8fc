-- What an agent usually does, by week: the median that a conversation of that week is compared with. Written once, so that a score
-- can be computed again years later and comes out the same.
create table pawl.norms (
  agent  text not null,
  name   text not null,                         -- e.g. 'reasoning tokens'
  week   date not null,                         -- its Monday, UTC
  value  double precision not null,
  sample integer not null check (sample > 0),   -- conversations it is the median of
  at     timestamptz not null,
  primary key (agent, name, week)
);
