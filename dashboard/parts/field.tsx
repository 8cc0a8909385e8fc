/** What a dialog asks for, with its name above it. */
type FieldProps = {
  readonly label: string;
  readonly value: string;
  readonly set: (value: string) => void;
};

type ChoiceProps = FieldProps & {
  readonly options: readonly (readonly [value: string, said: string])[];
};

export function Choice({ label, value, set, options }: ChoiceProps) {
  return (
    <label className="field">
      <span>{label}</span>
      <select value={value} onChange={(event) => set(event.target.value)}>
        {options.map(([one, said]) => (
          <option key={one} value={one}>
            {said}
          </option>
        ))}
      </select>
    </label>
  );
}

type EntryProps = FieldProps & { readonly type?: 'text' | 'number' | 'date'; readonly hint?: string };

export function Entry({ label, value, set, type = 'text', hint }: EntryProps) {
  return (
    <label className="field">
      <span>{label}</span>
      <input
        type={type}
        value={value}
        placeholder={hint}
        maxLength={200}
        onChange={(event) => set(event.target.value)}
      />
    </label>
  );
}
