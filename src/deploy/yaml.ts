/** A plain value as YAML: maps and lists by indentation, everything else as JSON, which YAML reads as well. Only writes. */
export function yaml(value: unknown, indent = ''): string {
  if (Array.isArray(value) && value.length > 0)
    return value.map((one) => `${indent}- ${yaml(one, `${indent}  `).trimStart()}`).join('\n');
  if (typeof value === 'object' && value !== null && Object.keys(value).length > 0)
    return Object.entries(value)
      .map(([key, one]) => {
        const isNested = typeof one === 'object' && one !== null && Object.keys(one).length > 0;
        return `${indent}${JSON.stringify(key)}:${isNested ? `\n${yaml(one, `${indent}  `)}` : ` ${yaml(one)}`}`;
      })
      .join('\n');
  return `${indent}${JSON.stringify(value ?? null)}`;
}
