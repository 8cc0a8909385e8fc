/** Changes whenever the same conversation would be shown to a reward model differently (reward-model.ts). */
export const formVersion = 2;
