// A server of the handshake era alone, of the official library 1.x. Its argument says what it does
// when it is asked for the other era: "error", "exit" or "silence".

import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js';
import { StdioServerTransport } from '@modelcontextprotocol/sdk/server/stdio.js';

const server = new McpServer({ name: 'handshake', version: '1.0.0' });
const transport = new StdioServerTransport();

server.registerTool('pid', {}, () => ({ content: [{ type: 'text', text: `${process.pid}` }] }));
await server.connect(transport);

const { onmessage } = transport;
transport.onmessage = (message, extra) => {
    if (message.method === 'server/discover' && process.argv[2] === 'exit')
        process.exit(1);
    if (message.method !== 'server/discover' || process.argv[2] === 'error')
        onmessage(message, extra);
};
