// Servers that are far away: --connect https:// to nginx with a certificate of the test's own
// authority, the official example of the older HTTP+SSE, and a pool with a "url".

import assert from 'node:assert/strict';
import { execFileSync, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import fs from 'node:fs';
import net from 'node:net';
import path from 'node:path';
import { test } from 'node:test';

import { StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';
import { StdioClientTransport as StdioClientTransport1 } from
    '@modelcontextprotocol/sdk/client/stdio.js';

import { Bus, daemon, freePort, MANY, workplace } from './bus.mjs';
import { Person as Person2, STATELESS, work } from './eras_person.mjs';
import { Person as Person1 } from './mcp_person.mjs';

const timeout = 120000;
process.env.PATH += ':/usr/sbin';
const missing = ['nginx', 'openssl'].filter((name) => spawnSync(name, ['-v']).error);

// A program that listens on the port, ended with the test or by its `stop`.
async function listening(t, port, command, args, env = {}) {
    const child = spawn(command, args, { stdio: ['ignore', 'pipe', 'pipe'],
        env: { ...process.env, ...env } });
    const exit = once(child, 'exit');
    let log = '';
    for (const stream of [child.stdout, child.stderr])
        stream.on('data', (chunk) => { log += chunk; });
    child.stop = async () => {
        child.kill(); // nginx ends its own processes then
        await exit;
    };
    t.after(child.stop);
    for (const end = Date.now() + 20000;;) {
        const socket = net.connect(port, '127.0.0.1');
        if (await new Promise((resolve) => {
            socket.once('connect', () => resolve(true)).once('error', () => resolve(false));
        })) {
            socket.destroy();
            return child;
        }
        assert.ok(child.exitCode === null && Date.now() < end, `no ${command}:\n${log}`);
        await new Promise((resolve) => setTimeout(resolve, 50));
    }
}

const serve = (t, port) => listening(t, port, process.execPath,
    [path.resolve('both_eras_server.mjs'), '--http', `${port}`]);

const started = (Transport, url, env) => new Transport({ command: daemon, args: ['--connect', url],
    env: { ...process.env, ...env }, stderr: 'inherit', maxBufferSize: 1 << 26 });

/* --- TLS --- */

class Authority {
    constructor(dir, name) {
        this.dir = dir;
        this.name = name;
        this.#openssl('req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 ' +
            `-keyout ${name}.key -out ${name}.pem -subj /CN=${name}`);
        this.file = path.join(dir, `${name}.pem`);
    }

    #openssl(words) {
        execFileSync('openssl', words.split(' '), { cwd: this.dir, stdio: 'pipe' });
    }

    // The names of the files of a certificate for a host of the name, and of its key.
    certify(name, days = 2) {
        const at = `${this.name}-${name}${days}`;

        fs.writeFileSync(path.join(this.dir, `${at}.ext`), `subjectAltName=DNS:${name}\n`);
        this.#openssl('req -new -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes ' +
            `-keyout ${at}.key -out ${at}.csr -subj /CN=${name}`);
        this.#openssl(`x509 -req -in ${at}.csr -CA ${this.name}.pem -CAkey ${this.name}.key ` +
            `-CAcreateserial -days ${days} -extfile ${at}.ext -out ${at}.pem`);
        return path.join(this.dir, at);
    }
}

// nginx with the certificate in front of the server. Resolves with the URL.
async function inFront(t, dir, server, certificate) {
    const port = await freePort(), config = path.join(dir, `nginx${port}.conf`);

    fs.writeFileSync(config, `daemon off; worker_processes 1; pid ${dir}/pid${port};
        error_log stderr; events {}
        http { access_log off;
            ${['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map((name) =>
        `${name}_temp_path ${dir}/${name};`).join(' ')}
            server { listen 127.0.0.1:${port} ssl;
                ssl_certificate ${certificate}.pem; ssl_certificate_key ${certificate}.key;
                location / { proxy_pass http://127.0.0.1:${server}; proxy_http_version 1.1;
                    proxy_set_header Host 127.0.0.1; proxy_set_header Connection '';
                    proxy_buffering off; proxy_request_buffering off;
                    proxy_read_timeout 1h; client_max_body_size 64m; } } }`);
    await listening(t, port, 'nginx', ['-e', 'stderr', '-c', config]);
    return `https://localhost:${port}/mcp`;
}

// What is said of a server that is not to be trusted: the answer to the first request.
async function refusal(t, url, env) {
    const child = spawn(daemon, ['--connect', url], { stdio: ['pipe', 'pipe', 'pipe'],
        env: { ...process.env, ...env } });
    t.after(() => child.kill('SIGKILL'));
    let log = '';
    child.stderr.on('data', (chunk) => { log += chunk; });
    child.stdin.end(`${JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'initialize', params: {
        protocolVersion: '2025-06-18', capabilities: {}, clientInfo: { name: 'a', version: '1' } },
    })}\n`);
    const [line] = await once(child.stdout.setEncoding('utf8'), 'data');
    const { id, error } = JSON.parse(line);
    assert.equal(id, 1);
    assert.ok(!error.message.includes('\n'), error.message);
    await once(child, 'exit');
    assert.ok(log.includes(error.message.replace(/^.*?: /, '')), log);
    return error.message;
}

test('--connect https://: nginx with a certificate', { timeout,
    skip: missing.length > 0 && `${missing} is not installed` }, async (t) => {
    const dir = workplace(), server = await freePort();
    const own = new Authority(dir, 'own'), other = new Authority(dir, 'other');
    const trusted = { SSL_CERT_FILE: own.file };
    await serve(t, server);
    const url = await inFront(t, dir, server, own.certify('localhost'));

    await t.test('clients of the library 1.x', async () => {
        const person = await new Person1('alice').connect(
            started(StdioClientTransport1, url, trusted));
        assert.equal(await person.text('steps', { who: 'alice' }, { onprogress() {} }), 'alice');
        assert.equal(person.progress.length, 3);
        const text = 'ü'.repeat(1 << 20);
        assert.equal(await person.text('size', { text }), `${text.length}`);
        await person.close();
    });
    for (const mode of ['legacy', { pin: STATELESS }, 'auto'])
        await t.test(`clients of the library 2.x, ${JSON.stringify(mode)}`, async () => {
            const all = await Promise.all(['bob', 'carol', 'dave'].map((name) =>
                new Person2(name, mode).connect(started(StdioClientTransport, url, trusted))));
            await Promise.all(all.map(work));
            for (const person of all)
                assert.deepEqual(person.logs().filter((line) => line !== `for ${person.name}`),
                    []);
            await Promise.all(all.map(({ client }) => client.close()));
        });
    const bad = [
        ['an unknown authority', url, { SSL_CERT_FILE: other.file }, /not known|unknown/],
        ['another name', await inFront(t, dir, server, own.certify('other.example')), trusted,
            /for another name/],
        ['the past', await inFront(t, dir, server, own.certify('localhost', -1)), trusted,
            /expired/],
    ];
    for (const [what, at, env, words] of bad)
        await t.test(`a certificate of ${what} is refused in one line`, async () =>
            assert.match(await refusal(t, at, env), words));
});

/* --- HTTP+SSE --- */

test('--connect http://: the official example of HTTP+SSE', { timeout }, async (t) => {
    const port = await freePort(), file = path.resolve(`sse_example${port}.mjs`);
    // As it is but for its port; its modules are found from here.
    fs.writeFileSync(file, fs.readFileSync('node_modules/@modelcontextprotocol/sdk/dist/esm/' +
        'examples/server/simpleSseServer.js', 'utf8')
        .replace('const PORT = 3000;', `const PORT = ${port};`)
        .replaceAll('\'../../server/', '\'@modelcontextprotocol/sdk/server/'));
    t.after(() => fs.rmSync(file));
    await listening(t, port, process.execPath, [file]);
    const url = `http://127.0.0.1:${port}/mcp`, args = { interval: 5, count: 20 };
    const said = (data) => data.some((text) => text.startsWith('Notification #20 '));

    const alice = await new Person1('alice').connect(started(StdioClientTransport1, url));
    assert.match(await alice.text('start-notification-stream', args), /Completed sending 20/);
    assert.ok(said(alice.heard.map(({ params }) => `${params.data}`)));
    await alice.close();

    const bob = await new Person2('bob', 'legacy').connect(started(StdioClientTransport, url));
    assert.match(await bob.call('start-notification-stream', args), /Completed sending 20/);
    assert.ok(said(bob.logs()));
    await bob.client.close();
});

/* --- a pool with a URL --- */

test('a pool with "url" shared by many clients, whose server is restarted', { timeout },
    async (t) => {
        const port = await freePort();
        let server = await serve(t, port);
        const bus = await Bus.start(t, { url: `http://127.0.0.1:${port}/mcp`, protocol: 'mcp',
            clients: 'shared', instances: 1, max_restarts: 20 }, 'http');
        const all = await Promise.all(Array.from({ length: MANY }, (_, i) =>
            new Person2(`person${i}`, 'legacy').connect(
                new StreamableHTTPClientTransport(new URL(bus.url)))));
        const pids = async () => new Set(await Promise.all(all.map((person) =>
            person.call('pid'))));

        assert.equal((await pids()).size, 1);
        for (let round = 0; round < 3; round++) {
            const [before] = await pids();
            await server.stop();
            server = await serve(t, port);
            // What was asked when the server was gone may have an error; the clients go on with
            // their sessions, and do not know of it.
            for (const end = Date.now() + 30000;;) {
                const answers = await Promise.allSettled(all.map((person) => person.call('pid')));
                const good = answers.filter(({ status }) => status === 'fulfilled');
                if (good.length === all.length) {
                    assert.notEqual(good[0].value, before);
                    break;
                }
                assert.ok(Date.now() < end, `${answers.find(({ reason }) => reason)?.reason}`);
                await new Promise((resolve) => setTimeout(resolve, 100));
            }
        }
        await Promise.all(all.map(async (person) =>
            assert.equal(await person.call('steps', { who: person.name },
                { onprogress: () => {} }), person.name)));
        for (const person of all)
            assert.deepEqual(person.progress, Array(3).fill(person.name));
        await Promise.all(all.map(({ client }) => client.close()));
        await bus.stop();
    });
