-- Whose words a reward model has learned from, as hashes: who asks to be forgotten is told.
alter table pawl.reward_models add column users text[] not null default '{}';
