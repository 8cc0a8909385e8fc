-- Consent is everybody's who took part, and no time lies where no clock was.

-- The stamp of a trajectory is the worst of its turns: withdrawn, else unknown, else given, which is also the order of the
-- alphabet. Until now it was that of the first user alone.
update pawl.trajectories t set consent = greatest(t.consent, everybody.consent)
from (
  select of.id, of.agent, of.day, max(case
    when c.withdrawn_at <= x.started_at then 'withdrawn' when c.given_at <= x.started_at then 'given' else 'unknown' end) as consent
  from pawl.trajectories of
  join pawl.turns x on x.trajectory = of.id and x.agent = of.agent and x.started_at between of.started_at and of.ended_at
    and x.user_id is distinct from of.user_id
  left join pawl.consent c on c.agent = x.agent and c.user_id = x.user_id
  group by of.id, of.agent, of.day
) everybody
where t.id = everybody.id and t.agent = everybody.agent and t.day = everybody.day and t.consent < everybody.consent;
drop function pawl.consent_at(text, text, timestamptz);

-- A signal from a future that a clock's error does not explain would stand for ever: its arrival is what is known.
update pawl.signals set at = received_at where at > received_at + interval '1 day' or at < '2000-01-01';
