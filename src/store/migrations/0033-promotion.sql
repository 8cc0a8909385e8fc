-- What a promotion is decided by: when each step began, so that steps are compared one by one, and what each look found.
alter table pawl.rollouts
  add column steps_at jsonb not null default '[]',
  add column looks jsonb not null default '[]';
update pawl.rollouts
set steps_at = jsonb_build_array((extract(epoch from started_at) * 1000)::bigint)
where started_at is not null;
-- Rollouts that began before go on as they began: by the checks alone.
update pawl.rollouts
set settings = settings || '{"promotion": {"rule": "checks", "margin": 0.03, "users": 1200, "looks": 4, "alpha": 0.025}}'
where not settings ? 'promotion';
