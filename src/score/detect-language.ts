/**
 * Which language a text is in, in one pass: by its letters where a script has one language among those we know, by its
 * commonest little words where many share a script. Code, addresses and names say nothing, so fenced code, links and mail
 * addresses are left out first. null: too little text, or no language that stands out. Small on purpose: it tells an answer in
 * the wrong language from one in the right language, not Danish from Norwegian.
 */
import { normalForm } from '../collect/normal-form.ts';

const scripts: readonly (readonly [string, RegExp])[] = [
  ['ko', /\p{Script=Hangul}/u],
  ['ja', /[\p{Script=Hiragana}\p{Script=Katakana}]/u],
  ['zh', /\p{Script=Han}/u],
  ['ru', /\p{Script=Cyrillic}/u],
  ['ar', /\p{Script=Arabic}/u],
  ['he', /\p{Script=Hebrew}/u],
  ['th', /\p{Script=Thai}/u],
  ['hi', /\p{Script=Devanagari}/u],
  ['el', /\p{Script=Greek}/u],
];

const little: Readonly<Record<string, string>> = {
  en: 'the and of to is in that it for you was with on are as be this have not your will has at from or by can we an if i my me do am please what how where would but there they',
  de: 'der die und in den von zu das mit sich des auf für ist im dem nicht ein eine als auch es an werden aus er hat dass sie nach ihre wird bei noch wie ich wir sind',
  fr: 'de la le et les des en un du une que est pour qui dans a par plus pas au sur ne se ce il sont avec votre vous nous être cette ou je',
  es: 'de la que el en y a los se del las un por con no una su para es al lo como más o pero sus le ha me si sin sobre este ya está usted',
  it: 'di e il la che in un a per è una sono con non si da come le dei nel alla della più ma anche lo gli ha al questo suo vostro',
  pt: 'de a o que e do da em um para com não uma os no se na por mais as dos como mas foi ao ele das tem seu sua ou ser está você',
  nl: 'de en van ik te dat die in een hij het niet zijn is was op aan met als voor had er maar om hem dan zou of wat mijn uw je wordt',
  sv: 'och i att det som en på är av för med den till inte har de om ett han men var jag vi kan du så från eller din',
  pl: 'i w na z do się nie to jest że o jak po co za ale od przez dla jego czy są być tym które już pan oraz ma',
  tr: 've bir bu da de için ile çok ne daha olarak ama gibi var mı en kadar sonra olan değil ben sen size siparişiniz her',
  vi: 'và của là có không cho được trong một người với các những khi đã này để đến từ bạn tôi sẽ cũng rất',
  id: 'yang dan di ini untuk dengan tidak dari dalam akan pada itu adalah anda saya ke bisa atau sudah telah ada kami',
};
const languagesOf = new Map<string, string[]>();
for (const [language, list] of Object.entries(little))
  for (const word of list.split(' ')) languagesOf.set(word, [...(languagesOf.get(word) ?? []), language]);

export const languages: readonly string[] = [...scripts.map(([language]) => language), ...Object.keys(little)].sort();

/** So much is enough to tell. */
const enough = 20_000;
/** An address is looked for where a word begins and nowhere else: many languages write pages without a space. */
const noise = /```[^`]*(?:```|$)|`[^`\n]*`|https?:\/\/\S+|(?<!\S)\S[^\s@]*@\S+/gu;

export function languageOf(text: string): string | null {
  const read = normalForm(text.slice(0, enough).replace(noise, ' ')).toLowerCase();
  const letters = new Map<string, number>();
  let latin = 0;
  for (const letter of read) {
    if (letter >= 'a' && letter <= 'z') latin++;
    if (letter < '\x80' || !/\p{L}/u.test(letter)) continue;
    const script = scripts.find(([, pattern]) => pattern.test(letter))?.[0];
    if (script === undefined) latin++;
    else letters.set(script, (letters.get(script) ?? 0) + 1);
  }
  // Japanese is Han with kana between; a Korean or Chinese text with English names in it is still one.
  const kana = letters.get('ja') ?? 0;
  const han = letters.get('zh') ?? 0;
  if (kana > 0 && kana + han >= latin / 4 && kana * 10 >= han) letters.set('ja', kana + han).delete('zh');
  const [best, count] = [...letters].sort((a, b) => b[1] - a[1])[0] ?? ['', 0];
  if (count >= 2 && count >= latin / 3) return best;
  const points = new Map<string, number>();
  for (const word of read.match(/\p{L}+/gu) ?? [])
    for (const language of languagesOf.get(word) ?? []) points.set(language, (points.get(language) ?? 0) + 1);
  const [first, second] = [...points].sort((a, b) => b[1] - a[1]);
  if (first === undefined || first[1] < 2) return null;
  return second !== undefined && second[1] >= first[1] ? null : first[0];
}
