-- What users did with an answer (accepted, edited, retried, abandoned, copied) is a signal too. Which kinds there are is the
-- doors' business: each parses what it takes.
alter table pawl.signals drop constraint if exists signals_kind_check;
alter table pawl.signals add constraint signals_kind_check check (kind ~ '^[a-z]{1,32}$');
