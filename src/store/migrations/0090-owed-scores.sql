-- Conversations that a scorer failed for, those asked longest ago first: they are tried again when no look back reaches them any more.
create index scores_owed on pawl.scores (agent, spec, at) where evidence like '% broken';
