-- What people say to an agent's loop, and since when it is there. Loops hear of every change at once.
create table pawl.loops (
  agent      text primary key,
  since      timestamptz not null,             -- times by the schedule are counted from here
  paused_at  timestamptz,
  paused_by  text,
  wanted     jsonb,                            -- {at, by, seed?}: a person asked for a turn that has not begun
  resumed_at timestamptz,                      -- failures before this no longer count
  looked_at  timestamptz                       -- when new traffic was last scored outside a turn
);

create function pawl.notify_loops() returns trigger language plpgsql as $$
begin
  perform pg_notify('pawl_loops', '');
  return null;
end $$;
create trigger loops_changed after insert or update of paused_at, wanted, resumed_at
  on pawl.loops for each statement execute function pawl.notify_loops();
