-- Keys that may say themselves which release answers (store/keys.ts).
alter table pawl.keys drop constraint keys_scopes_check;
alter table pawl.keys add constraint keys_scopes_check
  check (scopes <@ array['call', 'feedback', 'outcomes', 'read', 'evaluate'] and cardinality(scopes) > 0);
