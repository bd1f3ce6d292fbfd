// An MCP server over HTTP, by the official library 2.x alone: sessions of the handshake era, with a
// memory of events for streams that were cut, and the stateless era. Prints its port, which the
// second argument may name.

import { randomUUID } from 'node:crypto';
import { createServer } from 'node:http';

import { localhostHostValidation, localhostOriginValidation, NodeStreamableHTTPServerTransport,
    toNodeHandler, toWebRequest } from '@modelcontextprotocol/node';
import { createMcpHandler, isLegacyRequest } from '@modelcontextprotocol/server';

class EventStore {
    events = [];

    async storeEvent(stream, message) {
        this.events.push({ stream, message });
        return `${stream}_${this.events.length}`;
    }

    async replayEventsAfter(id, { send }) {
        const [, stream, number] = id.match(/^(.*)_(\d+)$/);
        for (let i = Number(number); i < this.events.length; i++)
            if (this.events[i].stream === stream && Object.keys(this.events[i].message).length > 0)
                await send(`${stream}_${i + 1}`, this.events[i].message);
        return stream;
    }
}

async function sessionOf(sessions, make, request) {
    const known = request.headers['mcp-session-id'];
    if (known !== undefined)
        return sessions.get(known);
    const transport = new NodeStreamableHTTPServerTransport({
        sessionIdGenerator: randomUUID,
        eventStore: new EventStore(),
        retryInterval: 50,
        onsessioninitialized: (id) => sessions.set(id, transport),
        onsessionclosed: (id) => sessions.delete(id),
    });
    await make().connect(transport);
    return transport;
}

// make(era, changed) makes a server; changed(kind), with `kind` tool or prompt, reports that a list
// has changed, for servers of one request alone.
export function serveHttp(make, changedHere) {
    const sessions = new Map();
    const stateless = createMcpHandler(({ era }) => make(era, (kind) =>
        kind === 'tool' ? stateless.notify.toolsChanged() : stateless.notify.promptsChanged()),
    { legacy: 'reject' });
    const handler = toNodeHandler(stateless);
    const guards = [localhostHostValidation(), localhostOriginValidation()];

    const listener = createServer(async (request, response) => {
        if (!guards.every((guard) => guard(request, response)))
            return;
        let body;
        if (request.method === 'POST') {
            let all = '';
            for await (const chunk of request.setEncoding('utf8'))
                all += chunk;
            try {
                body = JSON.parse(all);
            } catch {
                response.writeHead(400).end();
                return;
            }
        }
        if (!await isLegacyRequest(await toWebRequest(request, body), body)) {
            handler(request, response, body);
            return;
        }
        const session = await sessionOf(sessions, () => make('legacy', changedHere), request);
        if (session)
            session.handleRequest(request, response, body);
        else
            response.writeHead(404).end();
    });
    listener.listen(Number(process.argv[3] ?? 0), '127.0.0.1',
        () => console.log(listener.address().port));
}
