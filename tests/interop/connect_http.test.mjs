// stdio_bus --connect http://: official clients over stdio, servers over HTTP by the official
// library.

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import path from 'node:path';
import { test } from 'node:test';

import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';
import { StdioClientTransport as StdioClientTransport1 } from
    '@modelcontextprotocol/sdk/client/stdio.js';

import { daemon, freePort } from './bus.mjs';
import { CuttingProxy } from './cutting_proxy.mjs';
import { Person as Person2, STATELESS, work } from './eras_person.mjs';
import { checks } from './everything_checks.mjs';
import { Person as Person1 } from './mcp_person.mjs';

const timeout = 120000;
const CUTS = 5; // at least
const cutSeconds = Number(process.env.HTTP_CUT_SECONDS ?? 3);

// The address of a server that prints its port, or that gets it in the environment.
async function serve(t, args, port) {
    const server = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'pipe'],
        env: { ...process.env, PORT: `${port}` } });
    t.after(() => server.kill('SIGKILL'));
    const said = port ? server.stderr : server.stdout;
    const [line] = await once(said, 'data');
    said.resume();
    (port ? server.stdout : server.stderr).resume();
    return `127.0.0.1:${port ?? Number(line)}`;
}

const both = (t) => serve(t, [path.resolve('both_eras_server.mjs'), '--http']);
const started = (Transport, url) => new Transport({ command: daemon, args: ['--connect', url],
    stderr: 'inherit', maxBufferSize: 1 << 26 });
const connect = (url, name, mode) =>
    new Person2(name, mode).connect(started(StdioClientTransport, url));

// Without stdio_bus in between, server-everything over HTTP fails these too: it sends before the
// client listens, or to no session.
const left = ['list_changed', 'logging', 'a result of 5 MB'];

test('--connect http://: server-everything', { timeout }, async (t) => {
    const address = await serve(t, [path.resolve(
        'node_modules/@modelcontextprotocol/server-everything/dist/index.js'), 'streamableHttp'],
    await freePort());
    const person = await new Person1('alice').connect(
        started(StdioClientTransport1, `http://${address}/mcp`));
    for (const { name, run } of checks.filter((check) => !left.includes(check.name)))
        await t.test(name, () => run(person));
    await person.close();
});

test('--connect http://: ten clients of both eras', { timeout }, async (t) => {
    const url = `http://${await both(t)}/mcp`;
    const modes = ['legacy', { pin: STATELESS }, 'auto'];
    const all = await Promise.all(Array.from({ length: 10 }, (_, i) =>
        connect(url, `person${i}`, modes[i % modes.length])));

    await Promise.all(all.map(work));
    for (const person of all)
        assert.deepEqual(person.logs().filter((line) => line !== `for ${person.name}`), []);
    await Promise.all(all.map(({ client }) => client.close()));
});

test('--connect http://: streams that are cut', { timeout: timeout + cutSeconds * 1000 },
    async (t) => {
        const proxy = await CuttingProxy.start(t, await both(t), 1500);
        const end = Date.now() + cutSeconds * 1000;
        const calls = await Promise.all(Array.from({ length: 3 }, async (_, i) => {
            const person = await connect(proxy.url, `person${i}`, 'legacy');
            let count = 0;
            for (; proxy.cuts <= CUTS || Date.now() < end; count++) {
                const from = person.progress.length, to = 20 + 10 * (count % 5);
                assert.equal(await person.call('count', { to, ms: 2 }, { onprogress() {} }),
                    `${to}`);
                assert.deepEqual(person.progress.slice(from),
                    Array.from({ length: to }, (_, n) => `${n + 1}`));
            }
            await person.client.close();
            return count;
        }));
        t.diagnostic(`${proxy.cuts} cuts in ${calls.reduce((a, b) => a + b)} calls`);
    });
