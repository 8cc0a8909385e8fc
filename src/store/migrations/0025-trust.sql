-- How well a reward agreed with people when it was last looked at: what /metrics and `pawl doctor` show without computing it.
create table pawl.reward_checks (
  agent  text not null,
  spec   text not null,
  at     timestamptz not null,
  result jsonb not null,
  primary key (agent, spec)
);

-- Reward models by name: the weights are an artifact, `version` is the hash of all that decides what the model says.
-- `refused`: why the gate did not let it through; then no reward can use it.
create table pawl.reward_models (
  agent    text not null,
  name     text not null,
  version  text not null,
  artifact text not null,
  report   jsonb not null,
  refused  text,
  at       timestamptz not null,
  primary key (agent, name, version)
);
create index reward_models_newest on pawl.reward_models (agent, name, at desc);
