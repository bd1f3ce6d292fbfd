// The two eras of MCP in one pool, with the official libraries 2.x: half of the clients begin with
// initialize, the others name a protocol version in each request.

import assert from 'node:assert/strict';
import path from 'node:path';
import { test } from 'node:test';

import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';

import { MODES, daemon, eventually, withBus } from './bus.mjs';
import { loud, Person, STATELESS, work } from './eras_person.mjs';
import { SocketTransport } from './socket_transport.mjs';

const timeout = 300000;
const pool = (program, ...args) => ({ command: process.execPath,
    args: [path.resolve(program), ...args], protocol: 'mcp', instances: 24 });
const both = pool('both_eras_server.mjs');

const people = (count, bus, modes) => Promise.all(Array.from({ length: count }, (_, i) =>
    new Person(`person${i}`, modes[i % modes.length]).connect(new SocketTransport(bus.address))));

const close = (all) => Promise.all(all.map(({ client }) => client.close()));

for (const mode of MODES) {
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
