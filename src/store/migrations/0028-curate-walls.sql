-- Which client key a turn came with, and where the key's traffic lives and whose it is: what curating must not mix.
alter table pawl.turns add column client_key text;
alter table pawl.keys add column region text, add column tenant text;

-- What users agreed to beyond learning from their conversations (pawl.consent): that these leave their region ('transfer'), and
-- that they teach a model of other tenants ('tenants').
create table pawl.consent_purposes (
  agent        text not null,
  user_id      text not null,
  purpose      text not null check (purpose in ('transfer', 'tenants')),
  given_at     timestamptz,
  withdrawn_at timestamptz,
  primary key (agent, user_id, purpose)
);

-- The largest share of users that an agent ever held out: who was held out once stays so, whatever is set later.
create table pawl.holdouts (
  agent text primary key,
  share double precision not null check (share between 0 and 1)
);

-- Holds what is confidential: it, and what was trained on it, does not leave the deployment.
alter table pawl.datasets add column internal boolean not null default false;
