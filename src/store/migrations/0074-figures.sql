-- Figures that take long to count, as they were when they were last counted (store/figures.ts). Sums and counts only: nothing here names
-- a conversation or a user, so nothing of it has to be forgotten with them.
create table pawl.figures (
  agent      text not null,                    -- '': of all agents
  name       text not null,
  of         text not null,                    -- what it was counted of: a version of the reward, thresholds
  value      jsonb not null,
  took_ms    double precision not null,
  counted_at timestamptz not null,
  primary key (agent, name, of)
);
