// A server of the handshake era, of the official library 1.x, that asks its clients. Its tool `ask`
// has the arguments {kind, together, token}: "sampling", "elicitation" or "roots"; the number of
// calls that it waits for before all of them ask; whether the question has the progress token of
// the call. The answer is the text of the client's reply.

import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js';
import { StdioServerTransport } from '@modelcontextprotocol/sdk/server/stdio.js';
import * as types from '@modelcontextprotocol/sdk/types.js';
import { z } from 'zod';

const kinds = {
    sampling: [{ method: 'sampling/createMessage', params: { maxTokens: 9, messages: [
        { role: 'user', content: { type: 'text', text: 'who?' } }] } },
    types.CreateMessageResultSchema, ({ content }) => content.text],
    elicitation: [{ method: 'elicitation/create', params: { message: 'who?',
        requestedSchema: { type: 'object', properties: { name: { type: 'string' } } } } },
    types.ElicitResultSchema, ({ content }) => content.name],
    roots: [{ method: 'roots/list', params: {} }, types.ListRootsResultSchema,
        ({ roots }) => roots[0].name],
};

let waiting = [];

// Resolves for all calls at once.
function gathered(count) {
    return new Promise((resolve) => {
        waiting.push(resolve);
        if (waiting.length < count)
            return;
        waiting.forEach((each) => each());
        waiting = [];
    });
}

const server = new McpServer({ name: 'asking', version: '1.0.0' });

server.registerTool('ask', { inputSchema: { kind: z.string(), together: z.number(),
    token: z.boolean() } }, async ({ kind, together, token }, extra) => {
    const [{ method, params }, schema, read] = kinds[kind];
    const _meta = token ? { progressToken: extra._meta.progressToken } : undefined;

    await gathered(together);
    const reply = await server.server.request({ method, params: { ...params, _meta } }, schema);
    return { content: [{ type: 'text', text: read(reply) }] };
});
await server.connect(new StdioServerTransport());
