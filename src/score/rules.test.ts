import { describe, expect, test } from 'vitest';
import { filled } from '../collect/fixtures/adversarial.ts';
import { turn } from '../store/fixtures.ts';
import { answerLength } from './answer-length.ts';
import { languageOf } from './detect-language.ts';
import { fitsSchema } from './fits-schema.ts';
import { converse, trajectory } from './fixtures.ts';
import { language } from './language.ts';
import { matches } from './matches.ts';
import { rule } from './rule.ts';
import type { Scorer, ScorerInput } from './scorer.ts';
import { scorerConformance } from './scorer-conformance.ts';
import { OutOfTime } from './time-limit.ts';
import { tone } from './tone.ts';
import { words } from './words.ts';

const saying = (answer: string, question = 'Where is my order 7?'): ScorerInput => ({
  trajectory: trajectory(),
  turns: converse(question, [{ say: answer }]),
  signals: [],
});
const silent: ScorerInput = { trajectory: trajectory(), turns: [turn({ choices: [] })], signals: [] };
const suite = (name: string, scorer: Scorer, gold: string, poor: string) =>
  describe(name, () => {
    scorerConformance({ scorer, gold: saying(gold), poor: saying(poor), silent, readsAnswers: true });
  });
const worthOf = async (scorer: Scorer, input: ScorerInput) =>
  (await scorer.score(input, { signal: new AbortController().signal })).value;

const order = {
  type: 'object',
  properties: { items: { type: 'array', items: { $ref: '#/$defs/item' } } },
  required: ['items'],
  $defs: { item: { type: 'object', required: ['id'] } },
};
suite('fitsSchema', fitsSchema(order), '{"items":[{"id":1}]}', '{"items":[{"name":"x"}]}');
suite('matches', matches(/\border \d+\b/i), 'Order 7 was sent.', 'It was sent.');
suite('matches not', matches(/\d{6}/, { not: true }), 'It was sent.', 'The code is 123456.');
const careful = words({ required: ['order'], forbidden: ['refund', '환불'] });
suite('words', careful, 'Your order was sent.', 'Your order: no refund.');
suite('tone', tone({ avoid: ['rude', 'overconfident'] }), 'It was sent on Monday.', 'I guarantee it, whatever.');
suite('answerLength', answerLength({ min: 2, max: 5 }), 'It was sent.', 'It was sent on Monday, by train, from Busan.');
suite('language', language(['en']), 'It was sent to you on Monday.', '주문하신 상품은 월요일에 발송되었습니다.');
suite(
  'rule',
  rule('short', 1, ({ turns }) => {
    const said = turns[0]?.choices[0]?.message.content;
    return typeof said === 'string' ? said.length > 0 && said.length < 10 : null;
  }),
  'Sent.',
  'It was sent on Monday.',
);

describe('a rule about answers', () => {
  test('is the share of answers that keep it, and speaks of each', () => {
    const turns = converse('Where?', [{ say: 'Order 7.' }, { say: 'Gone.' }]);
    const { value, reason, turns: per } = matches(/order/i).score({ trajectory: trajectory(), turns, signals: [] });
    expect(value).toBe(0.5);
    expect(reason).toBe('1 of 2 answers: does not match /order/i');
    expect(turns.map(({ id }) => per.get(id))).toEqual([1, 0]);
  });

  test('leaves out turns that only call tools', () => {
    const turns = converse('Where?', [{ say: [['get_order', '{}']], results: ['{}'] }, { say: 'Order 7.' }]);
    expect(matches(/order/i).score({ trajectory: trajectory(), turns, signals: [] }).value).toBe(1);
  });

  test('does not let an expression go over an answer for ever', () => {
    expect(() => matches(/^(a+)+$/).score(saying(`${'a'.repeat(60)}!`))).toThrow(OutOfTime);
  });

  test('finds words whole, in any case and width, and Korean ones with their endings', () => {
    const no = words({ forbidden: ['art', '환불'] });
    expect(no.score(saying('The start of the party.')).value).toBe(1);
    expect(no.score(saying('ＡＲＴ is long.')).value).toBe(0);
    expect(no.score(saying('환불해 드릴게요.')).value).toBe(0);
    expect(words({ required: ['c++'] }).score(saying('Use C++, please.')).value).toBe(1);
  });

  test('length falls in proportion outside its limits', () => {
    expect(answerLength({ max: 2 }).score(saying('one two three four')).value).toBe(0.5);
    expect(answerLength({ min: 4 }).score(saying('only three words')).value).toBe(0.75);
    expect(answerLength({ min: 4 }).score(saying('나는 학교에 갑니다 오늘')).value).toBe(1);
  });

  test('each phrase of a bad tone costs a quarter', () => {
    expect(tone({ avoid: ['pushy'], also: ['buy'] }).score(saying('Hurry, act now and buy!')).value).toBe(0.25);
  });

  test.each([
    () => fitsSchema({ $ref: '#/$defs/none' }),
    () => words({}),
    () => words({ required: [''] }),
    () => tone({ avoid: ['gloomy' as 'rude'] }),
    () => answerLength({}),
    () => language(['xx']),
    () => rule('', 1, () => 1),
  ])('refuses settings that mean nothing: %s', (make) => expect(make).toThrow());
});

describe('the language of a text', () => {
  test.each([
    ['The order was sent to you on Monday and will be there soon.', 'en'],
    ['주문하신 iPhone 15 상품은 UPS로 월요일에 발송되었습니다.', 'ko'],
    ['ご注文の商品は月曜日に発送されました。', 'ja'],
    ['您的订单已于星期一发货。', 'zh'],
    ['Ihre Bestellung wurde am Montag verschickt und ist auf dem Weg zu Ihnen.', 'de'],
    ['Votre commande est partie lundi et elle arrive dans deux jours.', 'fr'],
    ['Su pedido salió el lunes y llegará en dos días.', 'es'],
    ['Ваш заказ отправлен в понедельник.', 'ru'],
    ['I would like to cancel. I am Tara.', 'en'],
    ['mail.the.and.of@example.com OK', null],
    ['OK', null],
    ['```\nthe and of to is\n```', null],
  ])('%s: %s', (text, expected) => {
    expect(languageOf(text)).toBe(expected);
  });

  test.each(['가', '您的订单', 'a.', '@a', '`a'])('takes time in proportion where words have no end: %s', (piece) => {
    const took = (length: number) => {
      const text = filled(piece, length);
      const started = process.cpuUsage();
      languageOf(text);
      const { user, system } = process.cpuUsage(started);
      return (user + system) / 1000;
    };
    took(2_000);
    const [few, many] = [Math.max(4, took(2_000)), Math.min(took(20_000), took(20_000))];
    expect(many / few).toBeLessThan(30);
  });

  test('the answer is in that of the question, and too short a question tells nothing', async () => {
    expect(await worthOf(language('same'), saying('월요일에 발송되었습니다.', '제 주문은 어디에 있나요?'))).toBe(1);
    expect(await worthOf(language('same'), saying('It was sent to you on Monday.', '제 주문은 어디에 있나요?'))).toBe(
      0,
    );
    expect(await worthOf(language('same'), saying('It was sent to you on Monday.', 'Order?'))).toBeNull();
  });
});
