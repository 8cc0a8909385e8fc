-- A model that learned from what is confidential stays inside its deployment: the mark of its dataset, or of the model it was made
-- from, is its run's and its release's too.
alter table pawl.runs add column internal boolean not null default false;
alter table pawl.releases add column internal boolean not null default false;
update pawl.runs u set internal = true from pawl.datasets d where d.id = u.settings ->> 'dataset' and d.internal;
update pawl.releases r set internal = true
where exists (select 1 from pawl.datasets d where d.id = r.dataset and d.internal)
  or exists (select 1 from pawl.runs u where u.id = r.run and u.internal);
