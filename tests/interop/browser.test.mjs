// A page in headless Chromium, if CHROMIUM names the browser: from an allowed origin it calls a
// tool by fetch and by WebSocket; from another it is refused, also by a name that leads to
// 127.0.0.1.

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import fs from 'node:fs';
import http from 'node:http';
import path from 'node:path';
import { test } from 'node:test';

import { Bus, workplace } from './bus.mjs';

const { CHROMIUM } = process.env;
const page = fs.readFileSync('browser_page.html');

// A server of the page; `results` resolves with what the page found out.
async function pageServer(t) {
    const server = http.createServer((request, response) => {
        if (request.method !== 'POST') {
            response.writeHead(200, { 'Content-Type': 'text/html' }).end(page);
            return;
        }
        let body = '';
        request.setEncoding('utf8').on('data', (chunk) => { body += chunk; });
        request.on('end', () => {
            response.writeHead(204).end();
            server.emit('results', JSON.parse(body));
        });
    });
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    t.after(() => {
        server.closeAllConnections();
        server.close();
    });
    return server;
}

// What the page finds out at `url`, opened by the browser as `host`.
async function visit(t, server, host, url) {
    const at = `http://${host}:${server.address().port}/?${encodeURIComponent(url)}`;
    const browser = spawn(CHROMIUM, ['--headless=new', '--no-sandbox', '--disable-gpu',
        '--disable-dev-shm-usage', `--user-data-dir=${workplace()}`, '--no-first-run',
        '--host-resolver-rules=MAP evil.example 127.0.0.1', at],
    { stdio: 'ignore', detached: true });
    const ended = once(browser, 'exit');
    try {
        const [results] = await once(server, 'results', { signal: AbortSignal.timeout(60000) });
        return results;
    } finally {
        process.kill(-browser.pid, 'SIGKILL');
        await ended;
    }
}

test('pages of a browser', { timeout: 300000, skip: !CHROMIUM && 'CHROMIUM is not set' },
    async (t) => {
        const friend = await pageServer(t), stranger = await pageServer(t);
        const bus = await Bus.start(t, { command: process.execPath,
            args: [path.resolve('both_eras_server.mjs')], protocol: 'mcp', instances: 8 }, 'http',
        { listen: { origins: [`http://127.0.0.1:${friend.address().port}`] } });
        const { port } = new URL(bus.url);
        const all = (status) => ({ fetch: status, socket: status });

        await t.test('of an allowed origin', async () =>
            assert.deepEqual(await visit(t, friend, '127.0.0.1', bus.url), all('answered')));
        await t.test('of another origin', async () =>
            assert.deepEqual(await visit(t, stranger, '127.0.0.1', bus.url), all('refused')));
        await t.test('of a name that leads here', async () =>
            assert.deepEqual(await visit(t, stranger, 'evil.example',
                `http://evil.example:${port}/mcp`), all('refused')));
        await t.test('of an allowed origin, by a name that leads here', async () =>
            assert.deepEqual(await visit(t, friend, '127.0.0.1',
                `http://evil.example:${port}/mcp`), all('refused')));
        await bus.stop();
    });
