// A server of the official library, of both eras of MCP, over stdio, or with --http over HTTP. Its
// tools do what a bus has to keep apart: progress, log messages, questions, changes.

import { McpServer, inputRequired, acceptedContent } from '@modelcontextprotocol/server';
import { serveStdio, StdioServerTransport } from '@modelcontextprotocol/server/stdio';
import { z } from 'zod';

import { serveHttp } from './serve_http.mjs';

const text = (words) => ({ content: [{ type: 'text', text: words }] });
const form = { type: 'object', properties: { name: { type: 'string' } } };
const who = z.object({ who: z.string() });

function make() {
    const server = new McpServer({ name: 'both-eras', version: '1.0.0' },
        { capabilities: { tools: { listChanged: true }, logging: {} } });

    server.registerTool('pid', { inputSchema: z.object({}) }, () => text(`${process.pid}`));
    server.registerTool('steps', { inputSchema: who }, async ({ who: name }, ctx) => {
        const progressToken = ctx.mcpReq._meta?.progressToken;
        for (let progress = 1; progress <= 3 && progressToken !== undefined; progress++)
            await ctx.mcpReq.notify({ method: 'notifications/progress',
                params: { progressToken, progress, total: 3, message: name } });
        return text(name);
    });
    server.registerTool('count', { inputSchema: z.object({ to: z.number(), ms: z.number() }) },
        async ({ to, ms }, ctx) => {
            const progressToken = ctx.mcpReq._meta?.progressToken;
            for (let progress = 1; progress <= to; progress++) {
                await new Promise((resolve) => setTimeout(resolve, ms));
                await ctx.mcpReq.notify({ method: 'notifications/progress',
                    params: { progressToken, progress, total: to, message: `${progress}` } });
            }
            return text(`${to}`);
        });
    // For no request, once its own is answered.
    server.registerTool('later', { inputSchema: z.object({ who: z.string(), to: z.number(),
        ms: z.number() }) }, async ({ who: name, to, ms }) => {
        let number = 0;
        const timer = setInterval(() => {
            server.sendLoggingMessage({ level: 'info', data: `${name} ${++number}` });
            if (number === to)
                clearInterval(timer);
        }, ms);
        return text('later');
    });
    server.registerTool('size', { inputSchema: z.object({ text: z.string() }) },
        ({ text: words }) => text(`${words.length}`));
    server.registerTool('talk', { inputSchema: who }, async ({ who: name }, ctx) => {
        await ctx.mcpReq.log('info', `for ${name}`);
        return text(name);
    });
    server.registerTool('ask', { inputSchema: who }, ({ who: name }, ctx) => {
        const answer = acceptedContent(ctx.mcpReq.inputResponses, 'name',
            z.object({ name: z.string() }));
        if (answer === undefined)
            return inputRequired({ inputRequests: { name: inputRequired.elicit({
                message: `${name}?`, requestedSchema: form }) } });
        return text(answer.name);
    });
    server.registerTool('sleep', { inputSchema: z.object({ ms: z.number() }) },
        ({ ms }, ctx) => new Promise((resolve) => {
            console.error(`sleeping ${ctx.mcpReq.id}`);
            const timer = setTimeout(() => resolve(text('slept')), ms);
            ctx.mcpReq.signal.addEventListener('abort', () => {
                clearTimeout(timer);
                console.error(`cancelled ${ctx.mcpReq.id}`);
            });
        }));
    server.registerTool('change', { inputSchema: z.object({}) }, () => {
        server.sendToolListChanged();
        return text('changed');
    });
    return server;
}

if (process.argv[2] === '--http')
    serveHttp(make);
else
    serveStdio(make, { transport: new StdioServerTransport(process.stdin, process.stdout,
        { maxBufferSize: 1 << 26 }) });
