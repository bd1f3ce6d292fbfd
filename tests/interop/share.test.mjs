// Official clients that start `stdio_bus --share -- ...` as their server: all they can do with one
// process that they share, the end of the daemon, and what is left when they are gone.

import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import path from 'node:path';
import { test } from 'node:test';

import { StdioClientTransport as Stdio2 } from '@modelcontextprotocol/client/stdio';
import { StdioClientTransport as Stdio1 } from '@modelcontextprotocol/sdk/client/stdio.js';

import { daemon, quick, workplace } from './bus.mjs';
import * as eras from './eras_person.mjs';
import { checks } from './everything_checks.mjs';
import { Person } from './mcp_person.mjs';
import { leftOf, processTree } from './processes.mjs';

const SHARING = quick ? 4 : 10;
const timeout = 300000;
const everything = path.resolve(
    'node_modules/@modelcontextprotocol/server-everything/dist/index.js');

// A directory of its own for the daemons of a test, and what is in it.
class Shared {
    constructor(t, program, options = []) {
        this.clients = [];
        t.after(() => Promise.all(this.clients.map((client) => client.close().catch(() => {}))));
        const place = workplace();
        this.env = { ...process.env, XDG_RUNTIME_DIR: place, XDG_CACHE_HOME: place };
        this.start = { command: daemon, env: this.env, stderr: 'ignore', maxBufferSize: 1 << 26,
            args: ['--share', '--idle-exit', '1', ...options, '--', process.execPath,
                ...program] };
    }

    join(person, Transport) {
        this.clients.push(person.client);
        return person.connect(new Transport(this.start));
    }

    list() {
        return execFileSync(daemon, ['--list'], { env: this.env, encoding: 'utf8' });
    }

    // The daemons that run.
    daemons() {
        const rows = this.list().split('\n').slice(1)
            .map((line) => line.match(/^\S+ +(\d+) +[a-z]/));
        return rows.filter(Boolean).map(([, pid]) => Number(pid));
    }

    // The only daemon, and its processes.
    processes() {
        const daemons = this.daemons();
        assert.equal(daemons.length, 1, this.list());
        return processTree(daemons[0]);
    }
}

const inTurn = (count, connect) => Promise.all(Array.from({ length: count },
    (_, i) => connect(`person${i}`, i)));

test('one client alone can do what it can with a server of its own', { timeout }, async (t) => {
    const shared = new Shared(t, [everything, 'stdio']);
    const person = await shared.join(new Person('alice'), Stdio1);
    const pids = shared.processes();
    for (const { name, run } of checks)
        await t.test(name, () => run(person));
    await person.close();
    assert.deepEqual(await leftOf(pids), [], 'processes left');
    assert.equal(shared.list(), 'nothing is shared\n');
});

test(`${SHARING} clients with one server`, { timeout }, async (t) => {
    const shared = new Shared(t, [everything, 'stdio']);
    const all = await inTurn(SHARING, (name) => shared.join(new Person(name), Stdio1));
    const pids = shared.processes();
    assert.equal(pids.length, 2, 'a daemon and a server');
    await Promise.all(all.map(async (person) => {
        for (const { run } of checks.filter(({ apart }) => !apart))
            await run(person);
    }));
    assert.deepEqual(shared.processes(), pids);
    await Promise.all(all.map((person) => person.close()));
    assert.deepEqual(await leftOf(pids), [], 'processes left');
});

test(`${SHARING} clients of both eras`, { timeout }, async (t) => {
    const shared = new Shared(t, [path.resolve('both_eras_server.mjs')]);
    const modes = ['legacy', { pin: eras.STATELESS }, 'auto'];
    const all = await inTurn(SHARING, (name, i) =>
        shared.join(new eras.Person(name, modes[i % modes.length]), Stdio2));
    for (const stateless of [true, false]) {
        const some = all.filter((person) => person.stateless === stateless);
        const pids = await Promise.all(some.map((person) => person.call('pid')));
        assert.equal(new Set(pids).size, 1);
    }
    // Each in turn: a question of the server in the handshake era names no client.
    for (const person of all.filter(({ stateless }) => !stateless)) {
        assert.equal(await person.call('steps', { who: person.name },
            { onprogress: () => {} }), person.name);
        assert.deepEqual(person.progress, Array(3).fill(person.name));
        assert.equal(await person.call('ask', { who: person.name }), `${person.name}!`);
    }
    await Promise.all(all.filter(({ stateless }) => stateless).map(eras.work));
    const pids = shared.processes();
    await Promise.all(all.map(({ client }) => client.close()));
    assert.deepEqual(await leftOf(pids), [], 'processes left');
});

test('a server that knows no probe', { timeout }, async (t) => {
    const shared = new Shared(t, [path.resolve('handshake_server.mjs'), 'error']);
    const all = await inTurn(4, (name) =>
        shared.join(new eras.Person(name, 'auto'), Stdio2));
    assert.ok(all.every((person) => !person.stateless));
    assert.equal(new Set(await Promise.all(all.map((person) => person.call('pid')))).size, 1);
    await Promise.all(all.map(({ client }) => client.close()));
});

test('the daemon is killed under its clients, twice', { timeout }, async (t) => {
    const shared = new Shared(t, [everything, 'stdio']);
    const all = await inTurn(5, (name) => shared.join(new Person(name), Stdio1));
    for (let round = 0; round < 2; round++) {
        const busy = all.map(({ client }) => client.callTool({
            name: 'trigger-long-running-operation', arguments: { duration: 60, steps: 1 } }));
        await Promise.all(all.map((person) => person.text('echo', { message: 'before' })));
        process.kill(shared.daemons()[0], 'SIGKILL');
        for (const { reason } of await Promise.allSettled(busy))
            assert.match(String(reason), /-32000/);
        await Promise.all(all.map(async (person) => assert.equal(
            await person.text('echo', { message: person.name }), `Echo: ${person.name}`)));
        assert.equal(shared.processes().length, 2);
    }
    const pids = shared.processes();
    await Promise.all(all.map((person) => person.close()));
    assert.deepEqual(await leftOf(pids), [], 'processes left');
});

test('a client that is killed leaves nothing', { timeout }, async (t) => {
    const shared = new Shared(t, [everything, 'stdio']);
    const transport = new Stdio1(shared.start);
    const person = await new Person('alice').connect(transport);
    const pids = shared.processes();
    process.kill(transport.pid, 'SIGKILL');
    assert.deepEqual(await leftOf(pids), [], 'processes left');
    await person.close().catch(() => {});
});

test('each has a server of its own with --clients exclusive', { timeout }, async (t) => {
    const shared = new Shared(t, [everything, 'stdio'], ['--clients', 'exclusive']);
    const all = await inTurn(3, (name) => shared.join(new Person(name), Stdio1));
    await Promise.all(all.map(async (person) => {
        for (const { run } of checks)
            await run(person);
    }));
    assert.equal(shared.daemons().length, 1);
    await Promise.all(all.map((person) => person.close()));
});
