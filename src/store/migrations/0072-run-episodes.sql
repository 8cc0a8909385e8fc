-- Some attempts of a run's steps as people read them: of one task the best and the worst. Personal data in them is masked.
create table pawl.run_episodes (
  run       text not null references pawl.runs on delete cascade,
  step      integer not null,
  place     smallint not null,                 -- the best of the step first
  task      text not null,
  task_type text not null,
  attempt   integer not null,
  reward    double precision not null,
  success   boolean not null,
  body      jsonb not null,                    -- outcome, reasons, messages
  primary key (run, step, place)
);
