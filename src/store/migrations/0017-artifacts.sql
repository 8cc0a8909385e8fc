-- Where a dataset's file is: a reference that every machine resolves (artifacts/artifact.ts). Null: a file in the home of
-- the Pawl that made it, from before there were references.
alter table pawl.datasets add column artifact text;
