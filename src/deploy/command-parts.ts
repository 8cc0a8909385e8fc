/** What the commands of deploying have in common: lists, who does something and why, times and shares as people read them. */
import { Command } from 'commander';
import { byOption, type CommonOptions, sentence, wholeNumber, withConfigOption } from '../command.ts';

export type ListOptions = CommonOptions & { readonly agent?: string; readonly limit: number };
export type ActOptions = CommonOptions & { readonly by: string; readonly reason?: string };

export const time = (at: number): string => new Date(at).toISOString().slice(0, 19).replace('T', ' ');
export const share = (weight: number): string => `${Number((weight * 100).toFixed(1))}%`;

export const listing = (name: string, description: string): Command =>
  withConfigOption(new Command(name))
    .description(description)
    .option('--agent <name>', 'only this agent’s')
    .option('--limit <n>', 'how many, at most 1000', wholeNumber(1, 1000), 20)
    .option('--json', 'one JSON object per line');

/** Something that stands in the audit log with a name. */
export const acting = (name: string, description: string): Command =>
  withConfigOption(new Command(name))
    .description(description)
    .option(...byOption())
    .option('--json', 'print the result as JSON');

export const reasonOption = ['--reason <text>', 'why; stands in the audit log', sentence(2000)] as const;
