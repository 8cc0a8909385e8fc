/** What was lost between the gateway and the database, as the journal or the writer counted it: shown, never hidden. */
import type { Store } from './postgres.ts';
import { storeError } from './postgres.ts';

export type Loss = { readonly source: string; readonly reason: string; readonly count: number; readonly at: Date };

export const recordLoss = async (store: Store, { source, reason, count, at }: Loss): Promise<void> => {
  await store.db
    .insertInto('losses')
    .values({ source, reason, count, at })
    .execute()
    .catch((error) => {
      throw storeError(error, 'Recording a loss');
    });
};
