// server-everything with the official client: all checks that pass without the daemon must pass
// through it, over each transport, with one client and with many at once.

import assert from 'node:assert/strict';
import path from 'node:path';
import { test } from 'node:test';

import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';

import { MANY, MODES, again, configure, daemon, eventually, withBus, workplace } from './bus.mjs';
import { checks } from './everything_checks.mjs';
import { Person } from './mcp_person.mjs';
import { SocketTransport } from './socket_transport.mjs';

const server = path.resolve('node_modules/@modelcontextprotocol/server-everything/dist/index.js');
const command = { command: process.execPath, args: [server, 'stdio'] };
const mcp = { ...command, protocol: 'mcp', instances: 24 };
const timeout = 300000;

function started(program, args) {
    return new StdioClientTransport({ command: program, args, env: process.env, stderr: 'ignore',
        maxBufferSize: 1 << 26 });
}

const ways = {
    socket: (bus) => new SocketTransport(bus.address),
    connect: (bus) => started(daemon, ['--connect', bus.address]),
};

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

// One client; each check is a test.
async function alone(t, transport) {
    const person = await new Person('alice').connect(transport);
    for (const { name, run } of checks)
        await t.test(name, () => run(person));
    await person.close();
}

function people(count, bus, way) {
    return Promise.all(Array.from({ length: count },
        (_, i) => new Person(`person${i}`).connect(ways[way](bus))));
}

test('without the daemon', { timeout, skip: again },
    (t) => alone(t, started(command.command, command.args)));

test('stdio', { timeout },
    (t) => alone(t, started(daemon, ['--config', configure(workplace(), mcp)])));

const shared = { ...mcp, instances: 1, clients: 'sticky', ids: 'rewrite' };

// The requests of the server name no client: they go to the only possible client, or to none.
test('one server asks the client whose request it works on', { timeout },
    (t) => withBus(t, shared, 'unix', async (bus) => {
        const all = await people(3, bus, 'socket');
        const asked = (isRoots) => all.map((person) => person.asked.map(({ method }) => method)
            .filter((method) => (method === 'roots/list') === isRoots));

        // It asks for roots some time after the first client has connected.
        await eventually(() => asked(true).flat().length > 0,
            () => 'no client was asked for its roots');
        for (const person of all) {
            assert.match(await person.text('trigger-sampling-request',
                { prompt: 'p', maxTokens: 9 }), new RegExp(`${person.name} samples`));
            assert.match(await person.text('trigger-elicitation-request'),
                new RegExp(`${person.name} fills in`));
        }
        assert.deepEqual(asked(false),
            Array(3).fill(['sampling/createMessage', 'elicitation/create']));

        const other = all[1].call('trigger-long-running-operation', { duration: 5, steps: 1 });
        const refused = await all[0].client.callTool({ name: 'trigger-sampling-request',
            arguments: { prompt: 'p', maxTokens: 9 } });
        assert.equal(refused.isError, true);
        assert.match(refused.content[0].text, /-32000/);
        await other;
        assert.deepEqual(asked(false).map(({ length }) => length), [2, 2, 2]);
        await Promise.all(all.map((person) => person.close()));
    }));

test(`${MANY} clients on a server that takes one initialize`, { timeout },
    (t) => withBus(t, { ...shared, args: [path.resolve('one_client_server.mjs')] }, 'unix',
        async (bus) => {
            const all = await people(MANY, bus, 'socket');
            const pids = await Promise.all(all.map((person) => person.text('pid')));
            assert.equal(new Set(pids).size, 1);
            process.kill(Number(pids[0]), 'SIGKILL');
            await bus.logged(/its new process is initialized/);
            for (const person of all)
                assert.notEqual(await person.text('pid'), pids[0]);
            await Promise.all(all.map((person) => person.close()));
        }));

for (const mode of MODES) {
    for (const way of ['socket', 'connect']) {
        test(`${mode}, ${way}`, { timeout, skip: way === 'socket' && again },
            (t) => withBus(t, mcp, mode, (bus) => alone(t, ways[way](bus))));
    }

    test(`${mode}: ${MANY} clients at once, each with a server of its own`, { timeout },
        (t) => withBus(t, mcp, mode, async (bus) => {
            const all = await people(MANY, bus, 'socket');
            await Promise.all(all.map((person) => runChecks(person, checks)));
            await Promise.all(all.map((person) => person.close()));
        }));

    test(`${mode}: ${MANY} clients on one server`, { timeout },
        (t) => withBus(t, shared, mode,
            async (bus) => {
                const all = await people(MANY, bus, 'socket');
                assert.equal(bus.workers().length, 1);
                await Promise.all(all.map((person) => runChecks(person,
                    checks.filter(({ apart }) => !apart))));
                assert.equal(bus.workers().length, 1);
                await Promise.all(all.map((person) => person.close()));
            }));
}
