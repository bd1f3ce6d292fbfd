// HTTP in front of stdio servers, with the official clients of both eras of MCP: many at once,
// tools that talk and ask, subscriptions, connections that are cut, processes that are killed.
// HTTP_CUT_SECONDS is the time of the cuts.

import assert from 'node:assert/strict';
import path from 'node:path';
import { test } from 'node:test';

import { StreamableHTTPClientTransport as HttpTransport } from '@modelcontextprotocol/client';
import { StreamableHTTPClientTransport as HttpTransport1 } from
    '@modelcontextprotocol/sdk/client/streamableHttp.js';

import { MANY, again, eventually, quick, withBus } from './bus.mjs';
import { CuttingProxy } from './cutting_proxy.mjs';
import { Person as Person2, STATELESS, loud, work } from './eras_person.mjs';
import { checks } from './everything_checks.mjs';
import { Person as Person1 } from './mcp_person.mjs';

const timeout = 300000;
const PROCESSES = quick ? 4 : 16; // the default is 16
const LEAVING = PROCESSES + 4;
const CUTS = 5; // at least
const cutSeconds = Number(process.env.HTTP_CUT_SECONDS ?? 3);
const pool = (program, ...args) => ({ command: process.execPath,
    args: [path.resolve(program), ...args], protocol: 'mcp', instances: 24 });
const everything = pool('node_modules/@modelcontextprotocol/server-everything/dist/index.js',
    'stdio');
const both = pool('both_eras_server.mjs');
const modes = { 'handshake': 'legacy', 'stateless': { pin: STATELESS } };

// Comes back at once after a cut.
const reconnectionOptions = { initialReconnectionDelay: 10, maxReconnectionDelay: 100,
    reconnectionDelayGrowFactor: 1.5, maxRetries: 100 };

const connect = (url, name, mode) => new Person2(name, mode).connect(
    new HttpTransport(new URL(url), { reconnectionOptions }));

const people = (count, bus, chosen) => Promise.all(Array.from({ length: count }, (_, i) =>
    connect(bus.url, `person${i}`, chosen[i % chosen.length])));

const close = (all) => Promise.all(all.map(({ client }) => client.close()));

async function runChecks(person, chosen) {
    for (const { name, run } of chosen) {
        try {
            await run(person);
        } catch (error) {
            error.message = `${person.name}, ${name}: ${error.message}`;
            throw error;
        }
    }
}

// --- clients 1.x, server-everything ---

test('a client of the library 1.x', { timeout },
    (t) => withBus(t, everything, 'http', async (bus) => {
        const person = await new Person1('alice').connect(new HttpTransport1(new URL(bus.url)));
        for (const { name, run } of checks)
            await t.test(name, () => run(person));
        await person.close();
    }));

test(`${MANY} clients of the library 1.x, each with a server of its own`, { timeout, skip: again },
    (t) => withBus(t, everything, 'http', async (bus) => {
        const all = await Promise.all(Array.from({ length: MANY }, (_, i) =>
            new Person1(`person${i}`).connect(new HttpTransport1(new URL(bus.url)))));
        await Promise.all(all.map((person) => runChecks(person,
            checks.filter(({ name }) => name !== 'a result of 5 MB'))));
        await Promise.all(all.map((person) => person.end()));
    }));

test(`${MANY} clients of the library 1.x on one server`, { timeout },
    (t) => withBus(t, { ...everything, instances: 1, clients: 'sticky', ids: 'rewrite' }, 'http',
        async (bus) => {
            const all = await Promise.all(Array.from({ length: MANY }, (_, i) =>
                new Person1(`person${i}`).connect(new HttpTransport1(new URL(bus.url)))));
            assert.equal(bus.workers().length, 1);
            await Promise.all(all.map((person) => runChecks(person, checks.filter(
                ({ apart, name }) => !apart && name !== 'a result of 5 MB'))));
            assert.equal(bus.workers().length, 1);
            await Promise.all(all.map((person) => person.close()));
        }));

// Health checks of hosts.
test(`${LEAVING} hosts that leave without a DELETE, one after the other`, { timeout },
    (t) => withBus(t, { ...everything, instances: PROCESSES, busy_timeout_sec: 60 }, 'http',
        async (bus) => {
            const names = [];

            for (let i = 0; i < LEAVING; i++) {
                const person = await new Person1(`person${i}`).connect(
                    new HttpTransport1(new URL(bus.url)));
                names.push((await person.client.listTools()).tools.length);
                await person.close();
            }
            assert.deepEqual(new Set(names).size, 1);
            assert.match(bus.log, /it was idle, and gave way to another client/);
        }));

// --- clients 2.x, both eras ---

test(`${MANY} clients of the library 2.x, of both eras`, { timeout },
    (t) => withBus(t, both, 'http', async (bus) => {
        const all = await people(MANY, bus, ['legacy', { pin: STATELESS }, 'legacy', 'auto']);

        assert.equal(all.filter((person) => person.stateless).length, MANY / 2);
        await Promise.all(all.map(work));
        for (const person of all)
            assert.deepEqual(person.logs().filter((line) => line !== `for ${person.name}`), []);
        await close(all);
    }));

test('subscriptions of five clients on one process', { timeout },
    (t) => withBus(t, { ...both, instances: 1 }, 'http', async (bus) => {
        const all = await people(5, bus, [{ pin: STATELESS }]);
        const subscriptions = await Promise.all(all.slice(1).map(({ client }) =>
            client.listen({ toolsListChanged: true })));

        await all[2].call('change');
        await eventually(() => all.slice(1).every((person) => person.changes() === 1),
            () => `changes: ${all.map((person) => person.changes())}`);
        await subscriptions[0].close();
        await all[0].call('change');
        await eventually(() => all.slice(2).every((person) => person.changes() === 2),
            () => `changes: ${all.map((person) => person.changes())}`);
        assert.deepEqual(all.map((person) => person.changes()), [0, 1, 2, 2, 2]);
        process.kill(Number(await all[0].call('pid')), 'SIGKILL');
        await Promise.all(subscriptions.slice(1).map(({ closed }) => closed));
        assert.equal(await all[3].call('steps', { who: 'again' }), 'again');
        await close(all);
    }));

// A client that aborts closes its connection too: the server hears of it in either era.
for (const [era, mode] of Object.entries(modes)) {
    test(`cancelled: ${era}`, { timeout }, (t) => withBus(t, both, 'http', async (bus) => {
        const person = await connect(bus.url, 'alice', mode);
        const gone = new AbortController();
        const sleeps = person.call('sleep', { ms: 600000 }, { signal: gone.signal });
        await Promise.all([assert.rejects(sleeps),
            bus.logged(/^sleeping /m).then(() => gone.abort())]);
        await bus.logged(/^cancelled /m);
        assert.equal(await person.call('steps', { who: 'alice' }), 'alice');
        await close([person]);
    }));
}

// --- the process dies ---

for (const [era, mode] of Object.entries(modes)) {
    test(`killed while it works: ${era}`, { timeout }, (t) => withBus(t, both, 'http',
        async (bus) => {
            const person = await connect(bus.url, 'alice', mode);
            const pid = await person.call('pid');
            const sleeps = person.call('sleep', { ms: 600000 });
            await Promise.all([assert.rejects(sleeps, /worker exited before answering/),
                bus.logged(/^sleeping /m).then(() => process.kill(Number(pid), 'SIGKILL'))]);
            assert.notEqual(await person.call('pid'), pid);
            await close([person]);
        }));
}

// The handshake is not repeated: the session ends, and the client begins again.
test('killed, and the session with it', { timeout },
    (t) => withBus(t, { ...both, on_worker_exit: 'close' }, 'http', async (bus) => {
        const person = await connect(bus.url, 'alice', 'legacy');
        process.kill(Number(await person.call('pid')), 'SIGKILL');
        await bus.logged(/SIGKILL|killed|signal 9/i);
        await assert.rejects(async () => {
            for (;;)
                await person.call('pid');
        }, /404|[Ss]ession/);
        const again = await connect(bus.url, 'alice', 'legacy');
        assert.match(await again.call('pid'), /^\d+$/);
        await close([again]);
    }));

test('a session ends by DELETE', { timeout }, (t) => withBus(t, both, 'http', async (bus) => {
    const person = await connect(bus.url, 'alice', 'legacy');
    const pid = Number(await person.call('pid'));
    await person.client.transport.terminateSession();
    await eventually(() => !bus.workers().includes(pid), () => 'the process of a session is left');
}));

// --- connections that are cut in the middle of a stream ---

async function countThroughCuts(proxy, Transport, name, end) {
    const person = await new Person2(name, 'legacy').connect(
        new Transport(new URL(proxy.url), { reconnectionOptions }));
    let calls = 0;

    for (; proxy.cuts <= CUTS || Date.now() < end; calls++) {
        const from = person.progress.length;
        const to = 20 + 10 * (calls % 5);
        assert.equal(await person.call('count', { to, ms: 2 }, { onprogress() {} }), `${to}`);
        await eventually(() => person.progress.length >= from + to,
            () => `${name}: ${person.progress.length - from} of ${to}`);
        assert.deepEqual(person.progress.slice(from),
            Array.from({ length: to }, (_, i) => `${i + 1}`));
    }
    const logs = person.logs().length;
    await person.call('later', { who: name, to: 50, ms: 5 });
    await eventually(() => person.logs().length >= logs + 50,
        () => `${name}: ${person.logs().length - logs} of 50 notices`);
    assert.deepEqual(person.logs().slice(logs),
        Array.from({ length: 50 }, (_, i) => `${name} ${i + 1}`));
    await close([person]);
    return calls;
}

for (const [version, Transport] of [['1.x', HttpTransport1], ['2.x', HttpTransport]]) {
    test(`streams that are cut, library ${version}: nothing is lost, nothing comes twice`,
        { timeout: timeout + cutSeconds * 1000 },
        (t) => withBus(t, both, 'http', async (bus) => {
            const proxy = await CuttingProxy.start(t, bus.address, 1500);
            const end = Date.now() + cutSeconds * 1000;
            const calls = await Promise.all(Array.from({ length: 5 }, (_, i) =>
                countThroughCuts(proxy, Transport, `person${i}`, end)));
            t.diagnostic(`${proxy.cuts} cuts in ${calls.reduce((a, b) => a + b)} calls`);
        }));
}
