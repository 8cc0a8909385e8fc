-- Newest first is these indexes read backwards. In ascending order what comes next belongs at the end of them, where adding costs least
-- and pages are left full: in descending order every page was split in the middle, and the indexes were twice as large.
drop index pawl.trajectories_by_origin;
drop index pawl.trajectories_by_agent;
drop index pawl.trajectories_by_release;
create index trajectories_by_origin on pawl.trajectories (origin, started_at, agent, id);
create index trajectories_by_agent on pawl.trajectories (agent, origin, started_at, id);
create index trajectories_by_release on pawl.trajectories (release, started_at);
