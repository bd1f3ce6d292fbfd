// The two eras of MCP in one pool, with the official libraries 2.x: half of the clients begin with
// initialize, the others name a protocol version in each request.

import assert from 'node:assert/strict';
import path from 'node:path';
import { test } from 'node:test';

import { Client } from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';

import { daemon, withBus } from './bus.mjs';
import { SocketTransport } from './socket_transport.mjs';

const STATELESS = '2026-07-28';
const timeout = 300000;
const pool = (program, ...args) => ({ command: process.execPath,
    args: [path.resolve(program), ...args], protocol: 'mcp', instances: 24 });
const both = pool('both_eras_server.mjs');

class Person {
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

const people = (count, bus, modes) => Promise.all(Array.from({ length: count }, (_, i) =>
    new Person(`person${i}`, modes[i % modes.length]).connect(new SocketTransport(bus.address))));

const close = (all) => Promise.all(all.map(({ client }) => client.close()));

async function eventually(condition, what) {
    for (const end = Date.now() + 30000; !condition();) {
        assert.ok(Date.now() < end, what());
        await new Promise((resolve) => setTimeout(resolve, 10));
    }
}

const loud = { 'io.modelcontextprotocol/logLevel': 'debug' };

// What each client does at the same time as all others.
async function work(person) {
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

for (const mode of ['unix', 'tcp']) {
    test(`${mode}: 20 clients of both eras`, { timeout }, (t) => withBus(t, both, mode,
        async (bus) => {
            const all = await people(20, bus, ['legacy', { pin: STATELESS }, 'legacy', 'auto']);
            const stateless = all.filter((person) => person.stateless);
            const pids = async (some) =>
                new Set(await Promise.all(some.map((person) => person.call('pid')))).size;

            assert.equal(stateless.length, 10);
            await Promise.all(all.map(work));
            assert.equal(await pids(all.filter((person) => !person.stateless)), 10);
            assert.ok(await pids(stateless) < 10);
            for (const person of all)
                assert.deepEqual(person.logs().filter((line) => line !== `for ${person.name}`), []);
            await close(all);
        }));
}

// Each has the same ids for its own requests, "listen:0" included.
test('five clients on one process', { timeout }, (t) => withBus(t, { ...both, instances: 1 },
    'unix', async (bus) => {
        const all = await people(5, bus, [{ pin: STATELESS }]);
        const subscriptions = await Promise.all(all.slice(1).map(({ client }) =>
            client.listen({ toolsListChanged: true })));

        assert.equal(new Set(await Promise.all(all.map((person) => person.call('pid')))).size, 1);
        await all[2].call('change');
        await eventually(() => all.slice(1).every((person) => person.changes() === 1),
            () => `changes: ${all.map((person) => person.changes())}`);
        assert.equal(all[0].changes(), 0);

        await subscriptions[0].close();
        await all[0].call('change');
        await eventually(() => all.slice(2).every((person) => person.changes() === 2),
            () => `changes: ${all.map((person) => person.changes())}`);
        assert.deepEqual(all.map((person) => person.changes()), [0, 1, 2, 2, 2]);

        for (const person of all)
            await person.call('talk', { who: person.name }, {}, loud);
        await eventually(() => all.every((person) => person.logs().length === 1),
            () => `logs: ${all.map((person) => person.logs())}`);
        assert.deepEqual(all.map((person) => person.logs()[0]),
            all.map((person) => `for ${person.name}`));

        process.kill(Number(await all[0].call('pid')), 'SIGKILL');
        await Promise.all(subscriptions.slice(1).map(({ closed }) => closed));
        assert.equal(await all[3].call('steps', { who: 'again' }), 'again');
        await close(all);
    }));

for (const answer of ['error', 'exit']) {
    test(`a server without the stateless era: ${answer}`, { timeout }, (t) => withBus(t,
        { ...pool('handshake_server.mjs', answer), instances: 6 }, 'unix', async (bus) => {
            const all = await people(5, bus, ['auto']);

            assert.ok(all.every((person) => !person.stateless));
            const pids = await Promise.all(all.map((person) => person.call('pid')));
            assert.equal(new Set(pids).size, 5);
            assert.doesNotMatch(bus.log, /restarting/);
            await close(all);
        }));
}

// Over stdio the library probes with a process of its own; through the daemon that is a client.
for (const [program, args, stateless] of [['both_eras_server.mjs', [], true],
    ...['error', 'exit', 'silence'].map((answer) => ['handshake_server.mjs', [answer], false])]) {
    test(`--connect, auto: ${program} ${args}`, { timeout }, (t) => withBus(t,
        { ...pool(program, ...args), instances: 6 }, 'unix', async (bus) => {
            for (let i = 0; i < 2; i++) {
                const person = new Person('alice', 'auto', args[0] === 'silence' ? 3000 : 120000);
                await person.connect(new StdioClientTransport({ command: daemon,
                    args: ['--connect', bus.address], stderr: 'ignore' }));
                assert.equal(person.stateless, stateless);
                assert.match(await person.call('pid'), /^\d+$/);
                await person.client.close();
            }
            assert.doesNotMatch(bus.log, /restarting/);
        }));
}
