// Pools over NATS: a real nats-server, and the official client asks a pool by its subject and finds
// it as a service.

import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import path from 'node:path';
import { test } from 'node:test';

import { connect, JSONCodec } from 'nats';

import { freePort, withBus } from './bus.mjs';

const env = { ...process.env, PATH: `${process.env.PATH}:/usr/sbin` };
const skip = spawnSync('nats-server', ['-v'], { env }).error
    ? 'nats-server is not installed' : false;
const timeout = 60000;
const json = JSONCodec();
const worker = { command: process.execPath, args: [path.resolve('both_eras_server.mjs')],
    protocol: 'mcp', export: true };

async function startServer(t, port) {
    const server = spawn('nats-server', ['-a', '127.0.0.1', '-p', `${port}`],
        { env, stdio: ['ignore', 'ignore', 'pipe'] });
    const exit = once(server, 'exit');

    t.after(() => server.kill('SIGKILL'));
    await new Promise((resolve, reject) => {
        server.stderr.on('data', (chunk) => /Server is ready/.test(chunk) && resolve());
        exit.then(() => reject(new Error('nats-server has ended')));
    });
    return { stop: async () => { server.kill('SIGTERM'); await exit; } };
}

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
