// Real MCP programs around the daemon: server-everything, the official test server, as its worker;
// the official client library, and two plain sockets, as its clients.

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { test } from 'node:test';

import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';

import { leftOf, processTree } from './processes.mjs';
import { RawClient } from './raw_client.mjs';

const daemon = process.env.STDIO_BUS;
const server = path.resolve('node_modules/@modelcontextprotocol/server-everything/dist/index.js');
const COUNT = 200;

const underNode = { command: process.execPath, args: [server, 'stdio'] };
const underNpx = { command: 'npx', args: ['--offline', 'mcp-server-everything', 'stdio'] };

// A directory for the test, with a configuration of one pool of one worker.
function workplace(t, worker) {
    const dir = fs.mkdtempSync(path.join(os.tmpdir(), 'stdio_bus_interop.'));
    t.after(() => fs.rmSync(dir, { recursive: true }));
    const config = path.join(dir, 'config.json');
    fs.writeFileSync(config, JSON.stringify({ pools: [{ id: 'mcp', instances: 1, ...worker }] }));
    return { dir, config };
}

function echoed(result) {
    return result.content[0].text;
}

// The client library starts the daemon in place of the server; a shell around it records its exit
// status, which the library does not report.
async function officialClient(t, worker, count) {
    const { dir, config } = workplace(t, worker);
    const statusFile = path.join(dir, 'status');
    const transport = new StdioClientTransport({
        command: 'sh',
        args: ['-c', '"$@"; echo $? >"$STATUS_FILE"', 'sh', daemon, '--config', config, '--stdio'],
        env: { ...process.env, STATUS_FILE: statusFile },
        stderr: 'pipe',
    });
    let log = '';
    transport.stderr.on('data', (chunk) => { log += chunk; });
    const client = new Client({ name: 'stdio_bus interop', version: '1.0.0' });

    try {
        await client.connect(transport);
        assert.match(client.getServerVersion().name, /everything/);
        const { tools } = await client.listTools();
        assert.ok(tools.some((tool) => tool.name === 'echo'));

        const messages = Array.from({ length: count }, (_, i) => `message ${i} äöü €`);
        const answers = await Promise.all(messages.map(
            (message) => client.callTool({ name: 'echo', arguments: { message } })));
        assert.deepEqual(answers.map(echoed), messages.map((message) => `Echo: ${message}`));

        const pids = processTree(transport.pid);
        assert.ok(pids.length >= 3, 'a shell, the daemon and the server');
        await client.close();
        assert.deepEqual(await leftOf(pids), [], 'processes left');
        assert.equal(fs.readFileSync(statusFile, 'utf8').trim(), '0', 'exit status');
    } catch (error) {
        console.error(log);
        throw error;
    }
}

test(`official client: initialize, tools/list, ${COUNT} tools/call in parallel, close`,
    { timeout: 60000 }, (t) => officialClient(t, underNode, COUNT));

test('official client: a server started by npx leaves no process behind',
    { timeout: 60000 }, (t) => officialClient(t, underNpx, 10));

// The acts of each raw client; `nameId` makes the id of its n-th request.
async function rawConversation(client, name, nameId) {
    const hello = await client.request(nameId(0), 'initialize', {
        protocolVersion: '2025-06-18',
        capabilities: {},
        clientInfo: { name, version: '1.0.0' },
    });
    assert.match(hello.result.serverInfo.name, /everything/);
    client.notify('notifications/initialized');

    const calls = Array.from({ length: COUNT }, (_, i) => client.request(
        nameId(i + 1), 'tools/call', { name: 'echo', arguments: { message: `${name} ${i}` } }));
    for (const [i, answer] of (await Promise.all(calls)).entries()) {
        assert.equal(answer.id, nameId(i + 1));
        assert.equal(echoed(answer.result), `Echo: ${name} ${i}`);
    }
}

async function twoRawClients(t, idsOf) {
    const { dir, config } = workplace(t, underNode);
    const socket = path.join(dir, 'bus.sock');
    const bus = spawn(daemon, ['--config', config, '--unix', socket],
        { stdio: ['ignore', 'inherit', 'pipe'] });
    let log = '';
    bus.stderr.on('data', (chunk) => { log += chunk; });
    t.after(() => bus.kill('SIGKILL'));

    try {
        const names = ['alice', 'bob'];
        const clients = await Promise.all(names.map(() => RawClient.connect(socket)));
        await Promise.all(clients.map(
            (client, i) => rawConversation(client, names[i], idsOf(names[i]))));
        for (const client of clients) {
            assert.deepEqual(client.strays, []);
            client.close();
        }

        const pids = processTree(bus.pid);
        assert.ok(pids.length >= 2, 'the daemon and the server');
        const ended = once(bus, 'exit');
        bus.kill('SIGTERM');
        assert.deepEqual(await ended, [0, null], 'exit status and signal');
        assert.deepEqual(await leftOf(pids), [], 'processes left');
        assert.ok(!fs.existsSync(socket), 'the socket is gone');
    } catch (error) {
        console.error(log);
        throw error;
    }
}

test('two raw clients share the server over a Unix socket, each with ids of its own',
    { timeout: 60000 }, (t) => twoRawClients(t, (name) => (n) => `${name}-${n}`));

test('two raw clients share the server over a Unix socket, both with the same ids',
    { timeout: 60000 }, (t) => twoRawClients(t, () => (n) => n));
