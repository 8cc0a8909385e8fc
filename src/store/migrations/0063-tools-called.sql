-- Which of the tools that a request offered the answer called, so that how often tools are used can be told without reading
-- requests. Null: none was offered, or it is from before this was kept.
alter table pawl.turns add column tools_called text[];

-- The last look at it by a worker, for /metrics: conversations of a kind of task that were offered tools, and those that used one.
create table pawl.tool_adoption (
  agent     text not null,
  task_type text not null,
  offered   integer not null,
  used      integer not null,
  at        timestamptz not null,
  primary key (agent, task_type)
);
