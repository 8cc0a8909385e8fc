-- Days of which something was trained on, and since when: what was learned from is not kept for ever, however long conversations
-- otherwise are. A conversation lies on the days from its first turn to its last.
create table pawl.trained_days (
  day   date primary key,
  since timestamptz not null
);

insert into pawl.trained_days (day, since)
select days.day, min(u.created_at)
from pawl.runs u
join pawl.datasets d on d.id = u.settings ->> 'dataset' and d.settings ->> 'on' is distinct from 'simulation'
join pawl.dataset_rows r on r.dataset = d.id
join pawl.trajectories t on t.id = r.trajectory and t.agent = r.agent and t.day = r.day,
lateral (
  select t.day union select generate_series((t.started_at at time zone 'UTC')::date, (t.ended_at at time zone 'UTC')::date, interval '1 day')::date
) days(day)
group by 1;
