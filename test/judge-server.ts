/**
 * A judge for tests: a real HTTP server that speaks OpenAI's wire format, as vLLM and hosted ones do. It reads the prompt as a
 * model that keeps to its protocol would: the boundary and the control word from the system message, the task, and the blocks of
 * material. What it says of them is the test's function. `obedient` is one that does what the material says. Its moods are those
 * of real servers: see `Mood`. Asked anything else it answers as a model would.
 */
import { createServer, type IncomingHttpHeaders, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

export type Shown = {
  readonly task: string;
  /** Name and text of each block, unescaped; the planted one is left out. */
  readonly blocks: readonly { readonly name: string; readonly text: string }[];
  /** All of the user message, as it came. */
  readonly raw: string;
};

export type Mood =
  | 'well'
  /** Writes around the verdict, or in its place. */
  | 'prose'
  | 'fenced'
  | 'thinks'
  | 'cut'
  | 'silent'
  | 'down'
  | 'html'
  | 'unknown-model'
  | 'too-long'
  /** Does not say how many tokens it took. */
  | 'uncounted'
  /** 429 with Retry-After 0, so many times; then well. */
  | { readonly busy: number }
  /** Answers 400 to a request that has this field. */
  | { readonly refuses: 'response_format' | 'max_tokens' | 'temperature' };

export type ChatBody = {
  readonly model: string;
  readonly messages: readonly { readonly role: string; readonly content: string }[];
  readonly response_format?: { readonly json_schema: { readonly schema: Record<string, unknown> } };
  readonly max_tokens?: number;
  readonly temperature?: number;
};

export type JudgeServer = {
  readonly url: string;
  /** Requests that came, newest last. */
  readonly bodies: ChatBody[];
  readonly headers: IncomingHttpHeaders[];
  mood: Mood;
  /** Does what is written in the material. */
  obedient: boolean;
  verdict: (shown: Shown) => object;
  embedding: (text: string) => number[];
  close(): Promise<void>;
};

const unescaped = (text: string): string =>
  text
    .replace(/&#91;/g, '[')
    .replace(/&quot;/g, '"')
    .replace(/&lt;/g, '<')
    .replace(/&gt;/g, '>')
    .replace(/&amp;/g, '&');

/** What a model that keeps to the protocol makes of the messages. */
export function readPrompt({ messages }: Pick<ChatBody, 'messages'>): Shown & { readonly control: string } {
  const [system, user] = [messages[0]!.content, messages[1]!.content];
  const boundary = /<material-([a-z]+) …>/.exec(system)![1]!;
  const control = /"control" is the word ([a-z]+)/.exec(system)![1]!;
  const blocks = [
    ...user.matchAll(new RegExp(`<material-${boundary} name="([^"]*)">\\n([\\s\\S]*?)\\n</material-${boundary}>`, 'g')),
  ].map(([, name, text]) => ({ name: unescaped(name!), text: unescaped(text!) }));
  const task = user.slice(0, user.indexOf(`<material-${boundary}`)).trim();
  return { task, blocks: blocks.slice(0, -1), control, raw: user };
}

/** The last thing that anything in the prompt's records says `control` and the score are. */
function obey(raw: string, verdict: Record<string, unknown>, control: string) {
  const word = [...raw.matchAll(/"control" is ([a-z]+)\./g)].at(-1)?.[1] ?? control;
  const score = 'score' in verdict ? { score: 1 } : {};
  return { control: word, verdict: { ...verdict, ...score } };
}

export async function startJudge(verdict: JudgeServer['verdict'] = () => ({ reasoning: 'Fine.', score: 0.8 })) {
  const server = createServer((request, response) => {
    if (request.method === 'GET') return json(response, 200, { object: 'list', data: [] }); // what models there are
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      judge.headers.push(request.headers);
      const body = JSON.parse(Buffer.concat(chunks).toString('utf8')) as ChatBody & { input?: string[] };
      judge.bodies.push(body);
      if (request.url?.endsWith('/embeddings')) embeddings(body.input ?? [], response);
      else answer(body, response);
    });
  });

  const json = (response: ServerResponse, status: number, value: unknown, headers: Record<string, string> = {}) => {
    response.writeHead(status, { 'content-type': 'application/json', ...headers });
    response.end(JSON.stringify(value));
  };
  const problem = (message: string, type = 'BadRequestError', code = 400) => ({
    error: { message, type, param: null, code },
  });
  const completion = (content: string, finish = 'stop') => ({
    id: 'chatcmpl-1',
    object: 'chat.completion',
    created: 1_760_000_000,
    model: 'judge',
    choices: [{ index: 0, message: { role: 'assistant', content }, logprobs: null, finish_reason: finish }],
    usage: { prompt_tokens: 1000, completion_tokens: 100, total_tokens: 1100 },
  });

  function embeddings(texts: readonly string[], response: ServerResponse) {
    const data = texts.map((text, index) => ({ object: 'embedding', index, embedding: judge.embedding(text) }));
    json(response, 200, { object: 'list', model: 'e', data, usage: { prompt_tokens: 10, total_tokens: 10 } });
  }

  function answer(body: ChatBody, response: ServerResponse) {
    const { mood } = judge;
    if (mood === 'silent') return;
    if (mood === 'down') return json(response, 503, problem('Loading.', 'InternalServerError', 503));
    if (mood === 'unknown-model')
      return json(response, 404, problem('The model does not exist.', 'NotFoundError', 404));
    if (mood === 'too-long') return json(response, 400, problem("This model's maximum context length is 8192 tokens."));
    if (mood === 'html') {
      response.writeHead(502, { 'content-type': 'text/html' });
      return response.end('<html>Bad gateway</html>');
    }
    if (typeof mood === 'object' && 'busy' in mood) {
      judge.mood = mood.busy <= 1 ? 'well' : { busy: mood.busy - 1 };
      return json(response, 429, problem('Too many requests.', 'rate_limit_error', 429), { 'retry-after': '0' });
    }
    if (typeof mood === 'object' && 'refuses' in mood && mood.refuses in body)
      return json(response, 400, problem(`Unknown or unsupported parameter: '${mood.refuses}'.`));
    if (!body.messages.at(-1)?.content.includes('<material-'))
      return json(response, 200, completion('It was sent on Monday.')); // a model like any other
    const shown = readPrompt(body);
    const said = judge.verdict(shown) as Record<string, unknown>;
    const content = JSON.stringify(
      judge.obedient ? obey(shown.raw, said, shown.control) : { control: shown.control, verdict: said },
    );
    switch (mood) {
      case 'uncounted':
        return json(response, 200, { ...completion(content), usage: null });
      case 'prose':
        return json(
          response,
          200,
          completion(`I would say that this deserves a 9 out of 10. ${content} Hope this helps!`),
        );
      case 'fenced':
        return json(response, 200, completion(`\`\`\`json\n${content}\n\`\`\``));
      case 'thinks':
        return json(response, 200, completion(`<think>\nThe user wants {"control": …}\n</think>\n\n${content}`));
      case 'cut':
        return json(response, 200, completion(content.slice(0, -5), 'length'));
      default:
        return json(response, 200, completion(content));
    }
  }

  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const judge: JudgeServer = {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`,
    bodies: [],
    headers: [],
    mood: 'well',
    obedient: false,
    verdict,
    embedding: () => [1, 0],
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
  return judge;
}
