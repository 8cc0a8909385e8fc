/**
 * An agent as it runs in production: a server that is posted a task, lets a researcher answer the question and an editor shorten
 * what it said, and responds. While it practises, the model is the one at the base URL that comes with the task.
 */
import { createServer, type Server } from 'node:http';
import OpenAI from 'openai';

type Posted = { readonly task: { readonly input: { readonly question: string } } } & Readonly<
  Record<'base_url' | 'api_key', string>
>;

async function solve({ task, base_url: baseURL, api_key: apiKey }: Posted): Promise<string> {
  const client = new OpenAI({ baseURL, apiKey });
  const ask = async (role: string, content: string): Promise<string> => {
    const messages = [
      { role: 'system' as const, content: role },
      { role: 'user' as const, content },
    ];
    const { choices } = await client.chat.completions.create({ model: 'desk', max_tokens: 16, messages });
    return choices[0]?.message.content ?? '';
  };
  const found = await ask('You know the answer.', task.input.question);
  return ask('You repeat the last word.', found);
}

export const agent = (): Server =>
  createServer(async (request, response) => {
    let text = '';
    for await (const chunk of request.setEncoding('utf8')) text += chunk;
    try {
      response.end(JSON.stringify({ answer: await solve(JSON.parse(text)) }));
    } catch (error) {
      response.writeHead(500).end(String(error));
    }
  });

if (process.argv[1] === import.meta.filename) agent().listen(4800, '127.0.0.1');
