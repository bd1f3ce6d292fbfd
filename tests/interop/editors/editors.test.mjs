// Editors as clients, language servers as workers: Emacs with its jsonrpc.el (in Debian's package
// emacs-nox) as a client; VS Code's JSON language server as a worker, with VS Code's client library
// and a client of lines.

import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { createInterface } from 'node:readline';
import { test } from 'node:test';

import { createMessageConnection, StreamMessageReader, StreamMessageWriter } from
    'vscode-jsonrpc/node';

const daemon = process.env.STDIO_BUS;
const here = process.env.INTEROP_DIR;
const hasEmacs = spawnSync('emacs', ['--version']).status === 0;

// A directory for the test, with a configuration of one pool of one worker.
function workplace(t, worker) {
    const dir = fs.mkdtempSync(path.join(os.tmpdir(), 'stdio_bus_interop.'));
    t.after(() => fs.rmSync(dir, { recursive: true }));
    const config = path.join(dir, 'config.json');
    fs.writeFileSync(config, JSON.stringify({ pools: [{ id: 'w', instances: 1, ...worker }] }));
    return { dir, config };
}

test('Emacs as client of a worker that reads lines',
    { timeout: 120000, skip: !hasEmacs && 'emacs is not installed' }, (t) => {
        const { dir, config } = workplace(t,
            { command: process.execPath, args: [path.join(here, 'line_worker.mjs')] });
        const command = [daemon, '--config', config, '--stdio', '--framing', 'content-length',
            '--log-file', path.join(dir, 'log')];
        const { status, stdout, stderr } = spawnSync('emacs',
            ['-Q', '--batch', '-l', path.join(here, 'emacs.el')],
            { env: { ...process.env, BUS_COMMAND: JSON.stringify(command) }, encoding: 'utf8' });
        assert.equal(status, 0, `${stderr}\n${fs.readFileSync(path.join(dir, 'log'), 'utf8')}`);
        assert.equal(stdout, 'ok\n');
    });

// A JSON document with a mistake, and its schema.
const uri = 'file:///settings.json';
const mistaken = '{\n  "colour": "grün",\n  "size": 1,\n}\n';
const schema = {
    type: 'object',
    properties: {
        colour: { type: 'string', description: 'Farbe' },
        size: { enum: [1, 2, 3] },
        'línea': { type: 'boolean' },
    },
};

// The acts of an editor; `request` and `notify` send, `pushed` resolves with the params of the next
// notification of a method.
async function editorSession({ request, notify, pushed }) {
    const { capabilities } = await request('initialize', {
        processId: process.pid,
        rootUri: null,
        capabilities: {
            textDocument: { completion: { completionItem: { snippetSupport: true } } },
        },
        initializationOptions: { provideFormatter: true },
    });
    assert.ok(capabilities.completionProvider);
    notify('initialized', {});
    notify('workspace/didChangeConfiguration',
        { settings: { json: { schemas: [{ fileMatch: ['settings.json'], schema }] } } });

    const diagnosed = pushed('textDocument/publishDiagnostics');
    notify('textDocument/didOpen',
        { textDocument: { uri, languageId: 'json', version: 1, text: mistaken } });
    const { uri: about, diagnostics } = await diagnosed;
    assert.equal(about, uri);
    assert.equal(diagnostics.length, 1);
    assert.match(diagnostics[0].message, /comma/i);
    assert.deepEqual(diagnostics[0].range.start, { line: 2, character: 11 });

    const repaired = pushed('textDocument/publishDiagnostics');
    notify('textDocument/didChange', {
        textDocument: { uri, version: 2 },
        contentChanges: [{ text: mistaken.replace('1,', '1').replace('"colour"', '""') }],
    });
    assert.deepEqual((await repaired).diagnostics, []);

    const { items } = await request('textDocument/completion',
        { textDocument: { uri }, position: { line: 1, character: 3 } });
    assert.deepEqual(items.map(({ label }) => label).sort(), ['colour', 'línea']);

    assert.equal(await request('shutdown'), null);
    await notify('exit');
}

// The pool of the server; a client stays at the worker that has its documents.
const languageServer = {
    command: process.execPath,
    args: [path.resolve('node_modules/vscode-json-languageserver/bin/vscode-json-languageserver'),
        '--stdio'],
    framing: 'content-length',
    clients: 'exclusive',
    protocol: 'lsp',
};

// The bus with this server; ends with its input.
function startBus(t, ...options) {
    const { config } = workplace(t, languageServer);
    const bus = spawn(daemon, ['--config', config, '--stdio', ...options]);
    let log = '';
    bus.stderr.on('data', (chunk) => { log += chunk; });
    t.after(() => bus.kill('SIGKILL'));
    return { bus, ended: once(bus, 'exit'), log: () => log };
}

async function withLog({ log }, session) {
    try {
        await session();
    } catch (error) {
        console.error(log());
        throw error;
    }
}

test('a language server as worker, and its official client library as client',
    { timeout: 60000 }, (t) => {
        const running = startBus(t, '--framing', 'content-length');
        const { bus, ended } = running;
        return withLog(running, async () => {
            const connection = createMessageConnection(new StreamMessageReader(bus.stdout),
                new StreamMessageWriter(bus.stdin));
            connection.listen();
            await editorSession({
                request: (method, params) => connection.sendRequest(method, params),
                notify: (method, params) => connection.sendNotification(method, params),
                pushed: (method) => new Promise((resolve) => {
                    const registered = connection.onNotification(method, (params) => {
                        registered.dispose();
                        resolve(params);
                    });
                }),
            });
            bus.stdin.end();
            assert.deepEqual(await ended, [0, null]);
        });
    });

test('a language server as worker, and a client of lines',
    { timeout: 60000 }, (t) => {
        const running = startBus(t);
        const { bus, ended } = running;
        const waiting = new Map(); // id or method -> resolve
        let next = 0;
        const send = (message) =>
            bus.stdin.write(JSON.stringify({ jsonrpc: '2.0', ...message }) + '\n');
        createInterface({ input: bus.stdout }).on('line', (line) => {
            const message = JSON.parse(line);
            const key = message.method ?? message.id;
            waiting.get(key)?.(message.method ? message.params : message.result);
            waiting.delete(key);
        });
        const answer = (key) => new Promise((resolve) => waiting.set(key, resolve));
        return withLog(running, async () => {
            await editorSession({
                request: (method, params) => {
                    const id = next++;
                    send({ id, method, params });
                    return answer(id);
                },
                notify: (method, params) => send({ method, params }),
                pushed: answer,
            });
            bus.stdin.end();
            assert.deepEqual(await ended, [0, null]);
        });
    });
