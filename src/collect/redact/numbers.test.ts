import { randomUUID } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { redact } from './redact.ts';

const text = (value: string) => redact(value, {});

describe('phone numbers', () => {
  test.each([
    ['Call +82 10-1234-5678 now', 'Call [PHONE_1] now'],
    ['+49 (0)30 901820', '[PHONE_1]'],
    ['제 번호는 010-1234-5678입니다', '제 번호는 [PHONE_1]입니다'],
    ['０１０-１２３４-５６７８', '[PHONE_1]'],
    ['01012345678로 연락', '[PHONE_1]로 연락'],
    ['(212) 555-0142', '[PHONE_1]'],
    ['212-555-0142 ext. 12', '[PHONE_1]'],
    ['001-846-853-9089x92556 fax', '[PHONE_1] fax'],
    ['032 696 10 69', '[PHONE_1]'],
    ['Phone: 329 7730', 'Phone: [PHONE_1]'],
    ['전화번호 02-123-4567', '전화번호 [PHONE_1]'],
    ['one +1 212 555 0142, two +1 (212) 555-0142', 'one [PHONE_1], two [PHONE_1]'],
    ['{"phone":"5550142999"}', '{"phone":"[PHONE_1]"}'],
    ['{"phone":4915112345670}', '{"phone":"[PHONE_1]"}'],
  ])('%s → %s', (given, expected) => {
    expect(text(given)).toBe(expected);
    expect(text(expected)).toBe(expected);
  });
});

describe('numbers of states and banks', () => {
  test.each([
    ['my SSN is 219-09-9999', 'my SSN is [US_SSN_1]'],
    ['SSN 219099999', 'SSN [US_SSN_1]'],
    ['NHS number 943 476 5919', 'NHS number [UK_NHS_1]'],
    ['NI: QQ 12 34 56 C', 'NI: [UK_NINO_1]'],
    ['NI: AB123456C', 'NI: [UK_NINO_1]'],
    ['Steuer-ID 86095742719', 'Steuer-ID [DE_TAX_ID_1]'],
    ['86 095 742 719', '[DE_TAX_ID_1]'],
    ['주민등록번호 880101-1234567', '주민등록번호 [KR_RRN]'],
    ['주민번호는 ８８０１０１－１２３４５６７', '주민번호는 [KR_RRN]'],
    ['880101 - 1234567', '[KR_RRN]'],
    ['880101-1******', '[KR_RRN]'],
    ['RRN 2012014567890', 'RRN [KR_RRN]'],
    ['900101-5234567', '[KR_FRN]'],
    ['사업자등록번호 124-81-00998', '사업자등록번호 [KR_BRN_1]'],
    ['운전면허 11-19-123456-12', '운전면허 [LICENCE_1]'],
    ["driver's license number is LH329609T", "driver's license number is [LICENCE_1]"],
    ["my driver's license is 950735093", "my driver's license is [LICENCE_1]"],
    ['UK licence MORGA657054SM9IJ', 'UK licence [LICENCE_1]'],
    ['license number S123-4567-8901.', 'license number [LICENCE_1].'],
    ["driver's license S123-456-78-901-0", "driver's license [LICENCE_1]"],
    ['CA DL: A1234567', 'CA DL: [LICENCE_1]'],
    ['면허 서울 12-123456-78', '면허 서울 [LICENCE_1]'],
    ['sort code 12-34-56 account 12345678', 'sort code 12-34-56 account [ACCOUNT_1]'],
    ['passport M123A4567', 'passport [PASSPORT_1]'],
    ['여권번호는 M12345678', '여권번호는 [PASSPORT_1]'],
    ['US passport number: 561234567', 'US passport number: [PASSPORT_1]'],
    ['국민은행 123456-04-123456', '국민은행 [ACCOUNT_1]'],
    ['신한 110-123-456789로 입금', '신한 [ACCOUNT_1]로 입금'],
    ['bank account number 12345678', 'bank account number [ACCOUNT_1]'],
    ['IBAN GB82 WEST 1234 5698 7654 32.', 'IBAN [IBAN_1].'],
    ['DE89370400440532013000', '[IBAN_1]'],
    ['gb82west12345698765432', '[IBAN_1]'],
  ])('%s → %s', (given, expected) => {
    expect(text(given)).toBe(expected);
  });
});

describe('addresses of machines and money', () => {
  test.each([
    ['from 109.38.226.13 today', 'from [IP_1] today'],
    ['8.8.8.8', '[IP_1]'],
    ['addr 3b20:9a3a:1b2f:7ce:9ef1:4787:85fc:261e blocked', 'addr [IP_1] blocked'],
    ['abcd:ef12:1b2f:7ce:9ef1:4787:85fc:261e', '[IP_1]'],
    ['mac aa:bb:cc:dd:ee:01.', 'mac [MAC_1].'],
    ['AA-BB-CC-00-EE-01', '[MAC_1]'],
    ['mac 001A.2B3C.4D5E, and aabb.ccdd.ee01.', 'mac [MAC_1], and [MAC_2].'],
    ['btc 1A1zP1eP5QGefi2DMPTfTL5SLmv7DivfNa', 'btc [CRYPTO_1]'],
    ['bc1qar0srrr7xfkvy5l643lydnw9re59gtzzwf5mdq', '[CRYPTO_1]'],
    ['0x52908400098527886E0F7030069857D2E4169EE7', '[CRYPTO_1]'],
  ])('%s → %s', (given, expected) => {
    expect(text(given)).toBe(expected);
  });
});

describe('ordinary text stays as it is', () => {
  test.each([
    'Order 4521-8890 was shipped on 2026-03-14 and costs $1,299.00 (was $1,450.50).',
    'order number 1234567890, invoice INV-2024-000123, ticket #12345678, SKU 10029384',
    'Your order #555-0142-77 arrives between 10:30 and 12:45 on 14.03.2026.',
    'Please call me about order 12345678901.',
    'Tracking number: 1Z999AA10123456784 / 00340434161094042557',
    'At 2026-05-01T12:30:45.123Z the build 20260501.4 of v1.2.3.4 took 1234567 ms.',
    'timestamps 1760000000000 1712201234567 1801011234567',
    'barcode 8801115114154 and ISBN 978-3-16-148410-0',
    'const x = 0x7fffffff; a[10] = 3.14159265358979; sha 9fceb02d0ae598e95dc970b74767f19372d61af8',
    'npm i vite@5.4.0 && node --max-old-space-size=4096 -p 127.0.0.1:8080',
    'rows 1 000 000, 12 500 000 and 1,234,567,890; ratio 16:9; 24/7; 3-4 days; 1990-2020',
    'std::vector<int> a::b::c; 12:30:45; ::1; git@1a2b3c',
    'UUID 550e8400-e29b-41d4-a716-446655440000',
    '주문번호 2024031512345678, 가격 1,299,000원, 수량 3개, 2026년 3월 14일',
    'commit 1234567, PR 1234567, issue 12345678, version 10.0.19045.3803',
    '| 12 | 345 | 6789 | 10111 |',
    'My license plate; the MIT License; license key terms; version 2.0 of the license 2004',
    '1234.5678.9012 of 2024.0315.1200, ab12.cd34 and 12ab.34cd.56ef.78ab; A123-456-789 of a part',
    'call_abc1234567 toolu_01A09q90qw90lq917835lq9 chatcmpl-123456789',
    'Refund of 120.50 EUR for A-10234 (2 items), points 1250, zip 94107',
    'The bearer of passport photos needs 35 x 45 mm; 600 dpi; see page 1234567.',
  ])('%s', (given) => {
    expect(text(given)).toBe(given);
  });

  test('ids are not numbers of people', () => {
    for (let i = 0; i < 2000; i++) {
      // Half of them with groups of digits alone.
      const id = i % 2 === 0 ? randomUUID() : randomUUID().replace(/[a-f]/g, (one) => String(one.charCodeAt(0) % 10));
      expect(text(`trajectory ${id} done`)).toBe(`trajectory ${id} done`);
    }
  });
});

describe('a value that only the words around it give away', () => {
  test('is masked everywhere in the same value, by the same placeholder', () => {
    const given = ['My passport is M12345678.', 'Is M12345678 valid?', { note: 'XM12345678' }];
    expect(redact(given, {})).toEqual([
      'My passport is [PASSPORT_1].',
      'Is [PASSPORT_1] valid?',
      { note: 'XM12345678' },
    ]);
  });

  test('never touches the words of the protocol', () => {
    const given = { role: 'assistant', content: 'password: assistant' };
    expect(redact(given, {})).toEqual({ role: 'assistant', content: 'password: [SECRET_1]' });
  });
});
