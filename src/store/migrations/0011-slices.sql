-- What kinds of traffic are told apart by, computed when a turn is written so that measuring need not unpack requests.
-- task_type: what the agent's own request says. personal: masks of redaction in a user's words; a company's address in its
-- own instructions or answers does not count. An error in the path is "no": no turn may be refused for it.
alter table pawl.turns
  add column task_type text generated always as (
    substring(request -> 'metadata' ->> 'task_type' from '^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$')
  ) stored,
  add column personal boolean not null generated always as (
    case when redactions = '{}'::jsonb then false
    else coalesce(jsonb_path_exists(request, '$.*[*] ? (@.role == "user").** ? (@ like_regex "\\[[a-z][a-z-]{2,30}\\]")', '{}', true), false)
    end
  ) stored;
