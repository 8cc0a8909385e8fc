/** The recipes by name, for settings and help; what each does is in recipes.ts. A recipe is called after its algorithms. */
export const recipeNames = ['sft', 'rft', 'dpo', 'grpo', 'sft-grpo', 'rft-grpo', 'sft-dpo'] as const;
export type RecipeName = (typeof recipeNames)[number];
