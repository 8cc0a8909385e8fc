-- Labels are few among many votes and are read by themselves.
create index signals_labels on pawl.signals (agent, at desc) where kind = 'label';
