import { describe, expect, it } from 'vitest';
import { caseSchema } from './case.ts';
import { perturbations, perturbCase, perturbText } from './perturb.ts';

const text = 'Please cancel Order 4711 of ann@example.com before tomorrow morning.';

describe('a perturbation', () => {
  it('is the same for the same case, and leaves numbers and addresses alone', () => {
    for (const kind of perturbations) {
      const said = perturbText(kind, text, 'case-1');
      expect(said).toBe(perturbText(kind, text, 'case-1'));
      expect(said).toContain('4711');
      expect(said).toContain('ann@example.com');
    }
  });

  it('changes what its name says', () => {
    expect(perturbText('casing', text, 'a')).toBe(text.toLowerCase());
    expect(perturbText('wrapper', text, 'a')).toMatch(new RegExp(`^.+ ${text.replaceAll('.', '\\.')} .+$`));
    expect(perturbText('irrelevant', text, 'a').startsWith(`${text} `)).toBe(true);
    const typos = perturbText('typos', text, 'a');
    expect(typos).not.toBe(text);
    expect([...typos].sort()).toEqual([...text].sort());
  });

  it('touches the last thing the user says and the order of tools, and not what is expected', () => {
    const tools = ['a', 'b'].map((name) => ({ type: 'function' as const, function: { name } }));
    const one = caseSchema.parse({
      ...{ id: 'x', type: 't', tools, expect: { contains: 'Yes' } },
      messages: [
        { role: 'user', content: 'First Thing' },
        { role: 'assistant', content: 'Well' },
        { role: 'user', content: 'Second Thing' },
      ],
    });
    const quiet = perturbCase('casing', one);
    expect(quiet.messages.map(({ content }) => content)).toEqual(['First Thing', 'Well', 'second thing']);
    expect(quiet.expect).toEqual(one.expect);
    const turned = perturbCase('tools', one);
    expect(turned.tools!.map((tool) => tool.function.name)).toEqual(['b', 'a']);
    expect(turned.messages).toEqual(one.messages);
  });
});
