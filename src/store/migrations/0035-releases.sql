-- A release's own prompt and thinking budget, and what it was made from.
alter table pawl.releases drop column prompt; -- of the first schema; nothing ever set it
alter table pawl.releases
  add column prompt   jsonb,                   -- { text, rule }
  add column thinking integer,                 -- tokens; 0: none
  add column parent   text;
