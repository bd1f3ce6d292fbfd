// WebSocket in front of stdio servers: the package ws, with and without the official client, and
// python3-websockets.

import assert from 'node:assert/strict';
import { execFileSync, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import path from 'node:path';
import { test } from 'node:test';

import { WebSocketClientTransport } from '@modelcontextprotocol/sdk/client/websocket.js';
import WebSocket from 'ws';

import { MANY, withBus } from './bus.mjs';
import { checks } from './everything_checks.mjs';
import { Person } from './mcp_person.mjs';

globalThis.WebSocket = WebSocket; // the official transport takes the one of browsers

const timeout = 300000;
const everything = { command: process.execPath, args: [path.resolve(
    'node_modules/@modelcontextprotocol/server-everything/dist/index.js'), 'stdio'],
protocol: 'mcp', instances: 24 };
const both = { command: process.execPath, args: [path.resolve('both_eras_server.mjs')],
    protocol: 'mcp', instances: 24 };
const at = (bus) => new URL(bus.url.replace('http', 'ws'));

test('the official client 1.x over ws', { timeout },
    (t) => withBus(t, everything, 'http', async (bus) => {
        const person = await new Person('alice').connect(new WebSocketClientTransport(at(bus)));
        for (const { name, run } of checks)
            await t.test(name, () => run(person));
        await person.close();
    }));

test(`${MANY} official clients at once over ws`, { timeout },
    (t) => withBus(t, everything, 'http', async (bus) => {
        const all = await Promise.all(Array.from({ length: MANY }, (_, i) =>
            new Person(`person${i}`).connect(new WebSocketClientTransport(at(bus)))));
        const chosen = checks.filter(({ name }) => name !== 'a result of 5 MB');
        await Promise.all(all.map(async (person) => {
            for (const { run } of chosen)
                await run(person);
        }));
        await Promise.all(all.map((person) => person.close()));
    }));

const initialize = { jsonrpc: '2.0', id: 0, method: 'initialize', params: {
    protocolVersion: '2025-11-25', capabilities: {},
    clientInfo: { name: 'ws', version: '1' } } };
const initialized = { jsonrpc: '2.0', method: 'notifications/initialized' };
const call = (id, name, args) => ({ jsonrpc: '2.0', id, method: 'tools/call',
    params: { name, arguments: args } });

async function opened(bus, options = {}) {
    const socket = new WebSocket(at(bus), options.protocols ?? [], options);
    await once(socket, 'open');
    return socket;
}

async function answer(socket) {
    const [data, isBinary] = await once(socket, 'message');
    assert.equal(isBinary, false);
    return JSON.parse(data);
}

async function begin(socket) {
    socket.send(JSON.stringify(initialize));
    assert.equal((await answer(socket)).result.protocolVersion, '2025-11-25');
    socket.send(JSON.stringify(initialized));
}

test('ws: fragments, pings between them, large messages, an orderly end', { timeout },
    (t) => withBus(t, both, 'http', async (bus) => {
        const socket = await opened(bus, { perMessageDeflate: true });
        assert.equal(socket.extensions, '', 'compression');
        await begin(socket);

        const message = JSON.stringify(call(1, 'size', { text: 'ä€😀'.repeat(1000) }));
        const bytes = Buffer.from(message);
        const pongs = [];
        socket.on('pong', (data) => pongs.push(String(data)));
        for (let i = 0; i < bytes.length; i += 999) {
            socket.send(bytes.subarray(i, i + 999),
                { binary: false, fin: i + 999 >= bytes.length });
            if (i % 2 === 0)
                socket.ping(`${i}`);
        }
        assert.equal((await answer(socket)).result.content[0].text, '4000');
        assert.ok(pongs.length > 2, `${pongs}`);
        assert.equal(pongs[0], '0');

        const text = 'x'.repeat(5 << 20);
        socket.send(JSON.stringify(call(2, 'size', { text })));
        assert.equal((await answer(socket)).result.content[0].text, `${text.length}`);
        socket.close(1000, 'done');
        assert.equal((await once(socket, 'close'))[0], 1000);
    }));

test('ws: what is no message closes the connection', { timeout },
    (t) => withBus(t, both, 'http', async (bus) => {
        const codes = async (send) => {
            const socket = await opened(bus);
            send(socket);
            return (await once(socket, 'close'))[0];
        };
        assert.equal(await codes((socket) => socket.send(Buffer.from('{}'))), 1003, 'binary');
        assert.equal(await codes((socket) => socket.send(Buffer.from([0x7b, 0xff, 0x7d]),
            { binary: false })), 1007, 'not UTF-8');
        assert.equal(await codes((socket) => socket._socket.write(Buffer.from([0x81, 0x00]))),
            1002, 'not masked');
        assert.equal(await codes((socket) => socket._socket.write(Buffer.from(
            [0xc1, 0x80, 0, 0, 0, 0]))), 1002, 'a reserved bit');
        const socket = await opened(bus);
        await begin(socket);
    }));

test('ws: foreign origins and paths get no connection', { timeout },
    (t) => withBus(t, both, 'http', async (bus) => {
        const status = async (url, options) => {
            const socket = new WebSocket(url, options);
            socket.on('error', () => {});
            const [, { statusCode }] = await once(socket, 'unexpected-response');
            socket.terminate();
            return statusCode;
        };
        assert.equal(await status(at(bus), { origin: 'https://example.org' }), 403);
        assert.equal(await status(new URL('/nothing', at(bus))), 404);
    }));

const python = '/usr/bin/python3';
const hasWebsockets = spawnSync(python, ['-c', 'import websockets']).status === 0;

test('python3-websockets', { timeout, skip: !hasWebsockets && 'python3-websockets is missing' },
    (t) => withBus(t, both, 'http', (bus) => {
        const output = execFileSync(python, ['ws_person.py', at(bus).href],
            { encoding: 'utf8', timeout: 60000 });
        assert.equal(output, 'both-eras 20 x 50 answers, 1000 closed\n');
    }));
