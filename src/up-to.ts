/** All that a server sends, unless that is more than `most` bytes: then null, and no more of it is read. What never ends fills no memory. */
export async function upTo(most: number, sent: AsyncIterable<Uint8Array> | null): Promise<Buffer | null> {
  const chunks: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of sent ?? []) {
    size += chunk.length;
    if (size > most) return null; // leaving the loop ends the call
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}
