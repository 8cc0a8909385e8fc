-- What a conversation's user wrote first, by language and length, so that users can be told apart by it. Computed when a release is measured and
-- not while recording; first_chars null: not looked at yet. first_language null: too little text to tell.
alter table pawl.trajectories
  add column first_language text,
  add column first_chars integer;
