import { expect, test } from 'vitest';
import { birthsIn } from './birth.ts';

const found = (text: string) => birthsIn(text).map(({ start, end }) => text.slice(start, end));

test('a date is of birth where words before it say so, or a Korean syllable behind it', () => {
  expect(found('DOB 01/02/1980, born on 3 May 1990.')).toEqual(['01/02/1980', '3 May 1990']);
  expect(found('생년월일: 1990-01-02')).toEqual(['1990-01-02']);
  expect(found('저는 1990년 1월 2일생입니다')).toEqual(['1990년 1월 2일']);
  expect(found('90.01.02생, 여성')).toEqual(['90.01.02']);
});

test('any other date is nobody’s', () => {
  expect(found('Shipped on 2026-03-14, due 14.03.2026.')).toEqual([]);
  expect(found('2026년 3월 14일 생산된 제품, 3월 2일생산')).toEqual([]);
});
