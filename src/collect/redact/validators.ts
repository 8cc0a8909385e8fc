/** Checksums that a recognizer of the settings can name, over the letters and digits of what its pattern found. */
import validator from 'validator';
import { normalForm } from '../normal-form.ts';
import { isGermanTaxId } from './national-id.ts';

const digits = (value: string): string => normalForm(value).replace(/\D/g, '');

export const validators = {
  luhn: (value: string) => validator.isLuhnNumber(digits(value)),
  iban: (value: string) => validator.isIBAN(value.replace(/[\s-]/g, '').toUpperCase()),
  'iso7064-mod11-10': (value: string) => digits(value).length === 11 && isGermanTaxId(digits(value)),
  /** Weights 10 to 2, as NHS numbers and ISBN-10 have. */
  mod11: (value: string) => {
    const all = digits(value);
    const sum = [...all].reduce((total, digit, i) => total + Number(digit) * (all.length - i), 0);
    return all.length >= 2 && sum % 11 === 0;
  },
} as const satisfies Record<string, (value: string) => boolean>;
