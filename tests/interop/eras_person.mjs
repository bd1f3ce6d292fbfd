// A client of either era of MCP, with the official library 2.x.

import assert from 'node:assert/strict';

import { Client } from '@modelcontextprotocol/client';

export const STATELESS = '2026-07-28';

export class Person {
    // probeMs: how long a silent server is waited for.
    constructor(name, mode, probeMs = 120000) {
        this.name = name;
        this.heard = [];
        this.progress = [];
        this.client = new Client({ name, version: '1.0.0' }, {
            capabilities: { elicitation: { form: {} } },
            versionNegotiation: mode === 'legacy' ? undefined :
                { mode, probe: { timeoutMs: probeMs } },
        });
        this.client.setRequestHandler('elicitation/create', ({ params }) => {
            assert.equal(params.message, `${name}?`);
            return { action: 'accept', content: { name: `${name}!` } };
        });
        for (const method of ['notifications/tools/list_changed', 'notifications/message'])
            this.client.setNotificationHandler(method, (note) => this.heard.push(note));
    }

    async connect(transport) {
        await this.client.connect(transport);
        // The library may handle an answer before the progress that came first.
        const { onmessage } = transport;
        transport.onmessage = (message, extra) => {
            if (message.method === 'notifications/progress')
                this.progress.push(message.params.message);
            onmessage(message, extra);
        };
        this.stateless = this.client.getNegotiatedProtocolVersion() === STATELESS;
        return this;
    }

    async call(name, args = {}, options, meta) {
        const { content } = await this.client.callTool({ name, arguments: args, _meta: meta },
            options);
        return content[0].text;
    }

    changes() {
        return this.heard.filter(({ method }) => method.endsWith('list_changed')).length;
    }

    logs() {
        return this.heard.filter(({ method }) => method.endsWith('message'))
            .map(({ params }) => params.data);
    }
}

export const loud = { 'io.modelcontextprotocol/logLevel': 'debug' };

// What each client does at the same time as all others.
export async function work(person) {
    const gone = new AbortController();

    assert.ok((await person.client.listTools()).tools.some(({ name }) => name === 'steps'));
    assert.equal(await person.call('steps', { who: person.name },
        { onprogress: () => {} }), person.name);
    assert.deepEqual(person.progress, Array(3).fill(person.name));
    assert.equal(await person.call('ask', { who: person.name }), `${person.name}!`);
    assert.equal(await person.call('talk', { who: person.name }, {}, loud), person.name);
    const sleeps = person.call('sleep', { ms: 600000 }, { signal: gone.signal });
    setTimeout(() => gone.abort(), 50);
    await assert.rejects(sleeps);
    assert.equal(await person.call('steps', { who: person.name }), person.name);
}
