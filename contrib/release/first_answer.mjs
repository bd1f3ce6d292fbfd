// first_answer.mjs COMMAND ARGUMENT...: a client of the official library starts the command, which
// is a server of MCP on stdin and stdout. Prints how many milliseconds pass until it has answered,
// the least of five, and how many tools it has.

import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';

const [command, ...args] = process.argv.slice(2);
let least = Infinity;
let count = 0;

for (let run = 0; run < 5; run++) {
    const client = new Client({ name: 'first_answer', version: '1' });
    const transport = new StdioClientTransport({ command, args, env: process.env });
    const start = performance.now();
    await client.connect(transport);
    least = Math.min(least, performance.now() - start);
    count = (await client.listTools()).tools.length;
    await client.close();
}
console.log(`${Math.round(least)} ms, ${count} tools`);
