// stdio_bus --share in place of a server from npm: the official client starts it as its server.

import assert from 'node:assert/strict';
import fs from 'node:fs';
import net from 'node:net';
import path from 'node:path';
import { test } from 'node:test';

import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';

import { workplace } from './bus.mjs';
import { leftOf, processTree } from './processes.mjs';

const MANY = 10;
const IDLE_SEC = 2;
const SERVER = path.resolve('node_modules/@modelcontextprotocol/server-everything/dist/index.js');
const timeout = 120000;

async function connect(runtime, name) {
    const transport = new StdioClientTransport({
        command: process.env.STDIO_BUS,
        args: ['--share', '--idle-exit', String(IDLE_SEC), '--', process.execPath, SERVER, 'stdio'],
        env: { ...process.env, XDG_RUNTIME_DIR: runtime },
        stderr: 'ignore',
    });
    const client = new Client({ name, version: '1' }, { capabilities: { roots: {} } });
    await client.connect(transport);
    return client;
}

// What each daemon says of itself.
async function daemons(runtime) {
    const directory = path.join(runtime, 'stdio_bus');
    const sockets = fs.readdirSync(directory).filter((name) => name.endsWith('.sock'));
    return Promise.all(sockets.map((name) => new Promise((resolve, reject) => {
        const socket = net.connect(path.join(directory, name));
        let text = '';
        socket.on('data', (data) => { text += data; });
        socket.on('end', () => resolve(JSON.parse(text)));
        socket.on('error', reject);
        socket.write('{"stdio_bus":"status"}\n');
    })));
}

async function echo(client, message) {
    const { content } = await client.callTool({ name: 'echo', arguments: { message } });
    assert.match(content[0].text, new RegExp(message));
}

test('ten official clients share a server, and outlive its daemon', { timeout }, async (t) => {
    const runtime = workplace(t);
    const names = Array.from({ length: MANY }, (_, i) => `client${i}`);
    const clients = await Promise.all(names.map((name) => connect(runtime, name)));
    await Promise.all(clients.map((client, i) => echo(client, names[i])));
    const first = await daemons(runtime);
    assert.equal(first.length, 1);
    assert.equal(first[0].clients, MANY);
    assert.equal(first[0].workers.length, 1);

    const lost = clients.map((client) => client.callTool(
        { name: 'trigger-long-running-operation', arguments: { duration: 60, steps: 1 } }));
    await Promise.all(clients.map((client, i) => echo(client, names[i])));
    process.kill(first[0].pid, 'SIGKILL');
    for (const result of await Promise.allSettled(lost)) {
        assert.equal(result.status, 'rejected');
        assert.equal(result.reason.code, -32000);
    }
    await Promise.all(clients.map((client, i) => echo(client, `${names[i]} again`)));

    const second = await daemons(runtime);
    assert.equal(second.length, 1);
    const processes = processTree(second[0].pid);
    await Promise.all(clients.map((client) => client.close()));
    assert.deepEqual(await leftOf([...processes, ...processTree(first[0].pid)]), []);
});
