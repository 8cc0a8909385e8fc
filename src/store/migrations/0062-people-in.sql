-- Who is in a dataset's rows is found for all of them together (datasets.ts); one by one it took a third of curating.
drop function pawl.people_in(text, text, date);
