-- Conversations that people are asked to look at (src/review/). What they say of them are labels (pawl.signals).
create table pawl.review_items (
  agent      text not null,
  trajectory text not null,
  why        text not null check (why in ('random', 'disagreement')),
  reward     double precision,                 -- as it was when it was picked
  feedback   double precision,
  picked_at  timestamptz not null,
  primary key (agent, trajectory)
);
create index review_items_by_age on pawl.review_items (agent, picked_at);
