// A server of the official library 1.x that refuses a second initialize, as servers in other
// languages do.

import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js';
import { StdioServerTransport } from '@modelcontextprotocol/sdk/server/stdio.js';

const server = new McpServer({ name: 'one client', version: '1.0.0' });
const transport = new StdioServerTransport();
let initialized = false;

server.registerTool('pid', {}, () => ({ content: [{ type: 'text', text: `${process.pid}` }] }));
await server.connect(transport);

const { onmessage } = transport;
transport.onmessage = (message, extra) => {
    if (message.method === 'initialize' && initialized)
        transport.send({ jsonrpc: '2.0', id: message.id,
            error: { code: -32600, message: 'initialized already' } });
    else
        onmessage(message, extra);
    initialized ||= message.method === 'initialize';
};
