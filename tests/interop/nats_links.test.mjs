// Pools of another machine, with official clients: a real nats-server between the daemon that the
// clients ask and those that have the processes. The server is restarted, and daemons are killed.

import assert from 'node:assert/strict';
import path from 'node:path';
import { test } from 'node:test';

import { StreamableHTTPClientTransport as HttpTransport } from '@modelcontextprotocol/client';
import { StreamableHTTPClientTransport as HttpTransport1 } from
    '@modelcontextprotocol/sdk/client/streamableHttp.js';

import { AcpPerson, overSocket } from './acp_person.mjs';
import { Bus, MANY, again, eventually, freePort, workplace } from './bus.mjs';
import { Person as Person2, STATELESS, work } from './eras_person.mjs';
import { checks } from './everything_checks.mjs';
import { Person as Person1 } from './mcp_person.mjs';
import { skip, startServer } from './nats_server.mjs';
import { SocketTransport } from './socket_transport.mjs';

const timeout = 300000;
const program = (file, ...args) => ({ command: process.execPath, args: [path.resolve(file),
    ...args] });
const everything = { ...program(
    'node_modules/@modelcontextprotocol/server-everything/dist/index.js', 'stdio'),
protocol: 'mcp', instances: 24 };
const both = { ...program('both_eras_server.mjs'), protocol: 'mcp', instances: 24 };
const agents = (t) => ({ ...program('acp_agent.mjs'), env: { ACP_STATE: workplace() },
    protocol: 'acp', instances: 1 });

// nats-server, and the daemons that are connected to it.
class Machines {
    constructor(t, port) {
        this.t = t;
        this.port = port;
        this.nodes = []; // those that have the processes
        this.number = 0;
    }

    async start(pool, mode) {
        const nats = { servers: [`127.0.0.1:${this.port}`], node: `n${++this.number}` };
        const bus = await Bus.start(this.t, pool, mode, { nats });
        await bus.logged(/connected to 127/);
        return bus;
    }

    async serve(pool) {
        const node = await this.start({ ...pool, export: true }, 'unix');
        this.nodes.push(node);
        return node;
    }

    async restartServer() {
        await this.server.stop();
        this.server = await startServer(this.t, this.port);
    }

    // The node that has this process, which ends with it.
    async killBusyNode(pid) {
        const node = this.nodes.find((each) => each.workers().includes(pid));
        this.nodes = this.nodes.filter((each) => each !== node);
        node.process.kill('SIGKILL');
        await node.exit;
    }
}

// `count` daemons serve the pool, another one is asked: run(asked, machines).
async function withMachines(t, pool, count, mode, run) {
    const machines = new Machines(t, await freePort());
    const remote = { remote: true, protocol: pool.protocol, instances: pool.instances };

    machines.server = await startServer(t, machines.port);
    for (let i = 0; i < count; i++)
        await machines.serve(pool);
    const asked = await machines.start(remote, mode);
    try {
        await run(asked, machines);
        await asked.stop();
        for (const node of machines.nodes)
            await node.stop();
    } catch (error) {
        for (const bus of [asked, ...machines.nodes])
            console.error(bus.log.split('\n').slice(-40).join('\n'));
        throw error;
    }
    await machines.server.stop();
}

const connect = (bus, name, mode) => new Person2(name, mode).connect(
    bus.url.startsWith('http://1') ? new HttpTransport(new URL(bus.url)) :
        new SocketTransport(bus.address));
const close = (all) => Promise.all(all.map(({ client }) => client.close()));

// --- MCP ---

for (const [mode, transport] of [['unix', (bus) => new SocketTransport(bus.address)],
    ['http', (bus) => new HttpTransport1(new URL(bus.url))]]) {
    test(`a client of the library 1.x, ${mode}`, { timeout, skip: skip || again },
        (t) => withMachines(t, everything, 1, mode, async (asked) => {
            const person = await new Person1('alice').connect(transport(asked));
            for (const { name, run } of checks)
                await t.test(name, () => run(person));
            await person.close();
        }));
}

for (const mode of ['unix', 'http']) {
    test(`${MANY} clients of the library 2.x, of both eras, ${mode}`,
        { timeout, skip: skip || (mode === 'unix' && again) },
        (t) => withMachines(t, both, 2, mode, async (asked) => {
            const modes = ['legacy', { pin: STATELESS }, 'legacy', 'auto'];
            const all = await Promise.all(Array.from({ length: MANY }, (_, i) =>
                connect(asked, `person${i}`, modes[i % modes.length])));

            await Promise.all(all.map(work));
            for (const person of all)
                assert.deepEqual(person.logs().filter((line) => line !== `for ${person.name}`), []);
            await close(all);
        }));
}

for (const [era, mode] of [['handshake', 'legacy'], ['stateless', { pin: STATELESS }]]) {
    test(`nats-server is restarted with a request in flight: ${era}`, { timeout, skip },
        (t) => withMachines(t, both, 1, 'unix', async (asked, machines) => {
            const person = await connect(asked, 'alice', mode);
            const pid = await person.call('pid');
            const counts = person.call('count', { to: 40, ms: 50 }, { onprogress() {} });

            await eventually(() => person.progress.length > 3, () => 'no progress');
            await machines.restartServer();
            assert.equal(await counts, '40');
            assert.deepEqual(person.progress, Array.from({ length: 40 }, (_, i) => `${i + 1}`));
            assert.equal(await person.call('pid'), pid);
            await close([person]);
        }));

    test(`the node that serves is killed: ${era}`, { timeout, skip },
        (t) => withMachines(t, both, 2, 'unix', async (asked, machines) => {
            const person = await connect(asked, 'alice', mode);
            const pid = Number(await person.call('pid'));
            const sleeps = person.call('sleep', { ms: 600000 });

            await Promise.all([assert.rejects(sleeps, /worker exited before answering/),
                machines.killBusyNode(pid)]);
            const other = Number(await person.call('pid')); // the handshake was repeated
            assert.ok(machines.nodes[0].workers().includes(other));
            assert.equal(await person.call('steps', { who: 'alice' }), 'alice');
            await close([person]);
        }));
}

// One process at each node: the second client of a is served by b, and each next one gets the first
// place that is free.
test('a pool that overflows', { timeout, skip }, async (t) => {
    const machines = new Machines(t, await freePort());
    const pool = { ...both, instances: 1, busy_timeout_sec: 20, export: true };
    const isAt = async (node, person) => node.workers().includes(Number(await person.call('pid')));

    machines.server = await startServer(t, machines.port);
    const a = await machines.start({ ...pool, overflow: true }, 'unix');
    const b = await machines.start(pool, 'unix');
    const first = await connect(a, 'first', 'legacy');
    const second = await connect(a, 'second', 'legacy');
    assert.ok(await isAt(a, first) && await isAt(b, second));

    const third = connect(a, 'third', 'legacy');
    await a.logged(/client=3\] connected/); // a has as many links as processes: it waits
    await close([second]);
    assert.ok(await isAt(b, await third));

    const fourth = connect(a, 'fourth', 'legacy');
    await close([first]);
    assert.ok(await isAt(a, await fourth));
    await Promise.all([await third, await fourth].map(work));
    await close([await third, await fourth]);
    for (const node of [a, b])
        await node.stop();
    await machines.server.stop();
});

// --- ACP ---

async function turn(person, sessionId, chunks = 20) {
    const say = `${person.name} in ${sessionId}`;
    const reason = await person.prompt(sessionId,
        { say, chunks, permission: say, read: `/file of ${say}` });

    assert.equal(reason, 'end_turn');
    assert.deepEqual(person.texts(sessionId), [
        ...Array.from({ length: chunks }, (_, i) => `${say} ${i}`),
        `allow ${say}`, `${person.name} has /file of ${say}`]);
}

test('clients of ACP, and a restart of nats-server in the middle of a turn', { timeout, skip },
    (t) => withMachines(t, agents(t), 1, 'unix', async (asked, machines) => {
        const people = await Promise.all(Array.from({ length: 5 }, (_, i) =>
            new AcpPerson(`person${i}`).connect(overSocket(asked.address))));
        const sessions = await Promise.all(people.map((person) => person.newSession()));
        const turns = () => Promise.all(people.map((person, i) => turn(person, sessions[i])));

        await turns();
        const begun = Promise.all(people.map((person, i) => turn(person, sessions[i], 2000)));
        await machines.restartServer();
        await begun;
        await turns();
        await Promise.all(people.map((person) => person.close()));
    }));

test('clients of ACP, and the node of their agent is killed', { timeout, skip },
    (t) => withMachines(t, agents(t), 2, 'unix', async (asked, machines) => {
        const person = await new AcpPerson('alice').connect(overSocket(asked.address));
        const sessionId = await person.newSession();
        const outcome = person.prompt(sessionId, { say: 'begun', chunks: 1, wait: true })
            .catch((error) => error);

        await person.hears(sessionId, 'begun 0');
        await machines.killBusyNode(person.pid);
        assert.equal((await outcome).code, -32000);
        await person.initialize(); // the agent of the other node has the stored sessions
        assert.ok(machines.nodes[0].workers().includes(person.pid));
        await person.load(sessionId);
        assert.deepEqual(person.texts(sessionId), ['begun 0']);
        await turn(person, await person.newSession());
        await person.close();
    }));
