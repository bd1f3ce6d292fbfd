// Pools over NATS: a real nats-server, and the official client asks a pool by its subject and finds
// it as a service.

import assert from 'node:assert/strict';
import { execFileSync, spawn } from 'node:child_process';
import path from 'node:path';
import { test } from 'node:test';

import { connect, JSONCodec } from 'nats';

import { daemon, eventually, freePort, withBus, workplace } from './bus.mjs';
import { skip, startServer } from './nats_server.mjs';

const timeout = 60000;
const json = JSONCodec();
const worker = { command: process.execPath, args: [path.resolve('both_eras_server.mjs')],
    protocol: 'mcp', export: true };

// The daemon subscribes a moment after it listens.
async function ask(client, message) {
    for (const end = Date.now() + 20000; ;) {
        try {
            const reply = await client.request('stdio_bus.rpc.pool', json.encode(message),
                { timeout: 10000 });
            return json.decode(reply.data);
        } catch (error) {
            assert.ok(error.code === '503' && Date.now() < end, error);
            await new Promise((resolve) => setTimeout(resolve, 50));
        }
    }
}

const discover = (id) => ({ jsonrpc: '2.0', id, method: 'server/discover', params: { _meta: {
    'io.modelcontextprotocol/protocolVersion': '2026-07-28',
    'io.modelcontextprotocol/clientInfo': { name: 'nats', version: '1' },
    'io.modelcontextprotocol/clientCapabilities': {} } } });

test('the official client asks a pool, and finds it', { timeout, skip }, async (t) => {
    const port = await freePort();
    const server = await startServer(t, port);
    const nats = { servers: [`127.0.0.1:${port}`], node: 'interop' };

    await withBus(t, worker, 'unix', async () => {
        let client = await connect({ servers: `127.0.0.1:${port}` });
        const answer = await ask(client, discover('a'));

        assert.equal(answer.id, 'a');
        assert.ok(answer.result, JSON.stringify(answer));
        const infos = [];
        for await (const info of await client.services.client().info())
            infos.push(info);
        assert.equal(infos.length, 1);
        assert.equal(infos[0].name, 'pool');
        assert.equal(infos[0].endpoints[0].subject, 'stdio_bus.rpc.pool');
        const stats = [];
        for await (const one of await client.services.client().stats('pool', infos[0].id))
            stats.push(one);
        assert.equal(stats[0].endpoints[0].num_requests, 1);
        await client.close();

        await server.stop(); // the daemon waits for the next one
        const next = await startServer(t, port);
        client = await connect({ servers: `127.0.0.1:${port}` });
        assert.equal((await ask(client, discover(2))).id, 2);
        await client.close();
        await next.stop();
    }, { nats });
});

test('the official client sends an array', { timeout, skip }, async (t) => {
    const port = await freePort();
    const server = await startServer(t, port);
    const nats = { servers: [`127.0.0.1:${port}`] };

    await withBus(t, worker, 'unix', async () => {
        const client = await connect({ servers: `127.0.0.1:${port}` });
        const answers = await ask(client, [discover('a'), discover(2),
            { ...discover(3), method: 'none' }]);

        assert.ok(Array.isArray(answers), JSON.stringify(answers));
        const byId = new Map(answers.map((answer) => [answer.id, answer]));
        assert.deepEqual(new Set(byId.keys()), new Set(['a', 2, 3]));
        assert.ok(byId.get('a').result && byId.get(2).result && byId.get(3).error,
            JSON.stringify(answers));
        assert.equal((await ask(client, [])).error.code, -32700);
        await client.close();
    }, { nats });
    await server.stop();
});

// stdio_bus_rmp at the RMP socket in this directory; the lines that it prints.
function subscribe(t, dir, topic) {
    const lines = [];
    const program = spawn(`${daemon}_rmp`, ['sub', '--socket', path.join(dir, 'rmp.sock'), topic],
        { stdio: ['ignore', 'pipe', 'pipe'] });

    t.after(() => program.kill('SIGKILL'));
    program.stdout.on('data', (chunk) => lines.push(...`${chunk}`.trim().split('\n')));
    return new Promise((resolve) => program.stderr.on('data',
        (chunk) => /subscribed/.test(chunk) && resolve(lines)));
}

const publish = (dir, topic, text) => execFileSync(`${daemon}_rmp`,
    ['pub', '--socket', path.join(dir, 'rmp.sock'), topic, text]);

test('a topic reaches another daemon, and clients of NATS', { timeout, skip }, async (t) => {
    const port = await freePort();
    const server = await startServer(t, port);
    const dirs = [workplace(), workplace()];
    const keys = (dir) => ({ rmp: { socket_path: path.join(dir, 'rmp.sock') },
        nats: { servers: [`127.0.0.1:${port}`], topics: true } });
    const topic = 'news/of the day';

    await withBus(t, worker, 'unix', (a) => withBus(t, worker, 'unix', async (b) => {
        await Promise.all([a, b].map((bus) => bus.logged(/connected to 127/)));
        const [here, there] = await Promise.all(dirs.map((dir) => subscribe(t, dir, topic)));
        const client = await connect({ servers: `127.0.0.1:${port}` });
        const seen = [];
        client.subscribe('stdio_bus.topic.news.>', { callback: (_, message) =>
            seen.push(message) });
        await client.flush();

        await eventually(() => {
            publish(dirs[0], topic, '{"n":0}'); // until both have subscribed
            return there.length > 0 && seen.length > 0;
        }, () => b.log);
        for (let n = 1; n <= 50; n++)
            publish(dirs[n % 2], topic, `{"n":${n}}`);
        const done = (lines) => lines.some((line) => line.endsWith('{"n":50}'))
            && lines.some((line) => line.endsWith('{"n":49}'));
        await eventually(() => done(here) && done(there), () => `${here.length} ${there.length}`);
        for (const lines of [here, there]) { // each message once, those of a daemon in order
            const numbers = lines.map((line) => JSON.parse(line.split(' ').pop()).n)
                .filter((n) => n > 0);
            assert.equal(numbers.length, 50);
            for (const odd of [0, 1])
                assert.deepEqual(numbers.filter((n) => n % 2 === odd),
                    Array.from({ length: 25 }, (_, i) => 2 * i + (odd === 1 ? 1 : 2)));
        }
        const one = seen.at(-1); // a client sends it once more, with another msg_id
        assert.equal(one.subject, 'stdio_bus.topic.news.of%20the%20day');
        assert.match(one.headers.get('Stdio-Bus-Node'), /^[0-9a-f]{16}$/);
        const frame = Buffer.from(one.data);
        frame[56] ^= 1; // a byte of the msg_id
        const count = here.length;
        client.publish(one.subject, frame);
        client.publish(one.subject, frame);
        await eventually(() => here.length > count && there.length > count, () => a.log);
        await client.close();
    }, keys(dirs[1])), keys(dirs[0]));
    await server.stop();
});
