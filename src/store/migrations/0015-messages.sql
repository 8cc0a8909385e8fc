-- Each message once. A turn's request and answers are a frame and the names of its parts (store/content.ts); the parts are
-- rows of their own, which every later turn of the same agent and day refers to. By day, because retention drops days.
create table pawl.messages (
  day     date not null,                       -- of the turns that refer to it
  agent   text not null,
  hash    uuid not null,                       -- a keyed hash of what it says
  sent_at timestamptz not null,                -- when it last came with a turn; swept only when that is a while ago
  body    text,                                -- the JSON of a message, a tool or another long value
  parts   uuid[],                              -- or, of a piece of a long list, what is in it
  primary key (hash, agent, day),
  check ((body is null) <> (parts is null))
) partition by range (day);

-- Turns from before keep `request` and `choices`; a new one has neither.
alter table pawl.turns alter column request drop not null, alter column choices drop not null;
alter table pawl.turns
  add column frame json,
  add column parts uuid[],
  add column content_bytes integer,            -- of request and choices, put together again
  alter column task_type drop expression,
  alter column personal drop expression,
  alter column personal set default false;

do $$
begin
  alter table pawl.messages alter column body set compression lz4;
  alter table pawl.turns alter column frame set compression lz4;
exception when feature_not_supported or invalid_parameter_value then null;
end $$;
