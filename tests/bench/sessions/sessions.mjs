/* Processes and memory of ten sessions with five MCP servers: each session with servers of its own,
 * and through programs that share them. Run by run.sh; needs Linux's /proc. A session is a client
 * of the official library that has listed the tools of each server and stays connected. The memory
 * is the sum of the proportional shares (PSS) of all processes that the sessions have caused,
 * without the clients themselves, which are in this process. */
import { spawn } from 'node:child_process';
import {
    closeSync, existsSync, mkdtempSync, mkdirSync, openSync, readFileSync, readdirSync, rmSync,
} from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';

const SESSIONS = Number(process.env.SESSIONS ?? 10);
const bin = (name) => resolve('node_modules/.bin', name);
const scratch = mkdtempSync(join(tmpdir(), 'sessions-'));
const files = join(scratch, 'files');
mkdirSync(files);
const servers = {
    everything: [bin('mcp-server-everything')],
    filesystem: [bin('mcp-server-filesystem'), files],
    memory: [bin('mcp-server-memory')],
    'sequential-thinking': [bin('mcp-server-sequential-thinking')],
    playwright: [bin('playwright-mcp'), '--headless'],
};

/* Every process that a row causes has inherited this variable, daemons in the background too. */
const marker = `SESSIONS_ROW=${process.pid}.`;
let row = 0;
let failed = false;
const environment = () => ({
    PATH: process.env.PATH,
    HOME: scratch,
    XDG_RUNTIME_DIR: scratch,
    SESSIONS_ROW: `${process.pid}.${row}`,
});

function processes() {
    return readdirSync('/proc')
        .filter((name) => /^\d+$/.test(name))
        .filter((pid) => {
            try {
                const variables = readFileSync(`/proc/${pid}/environ`, 'latin1');
                return variables.split('\0').includes(marker + row);
            } catch {
                return false;
            }
        })
        .map(Number);
}

function memory(pid) {
    try {
        const text = readFileSync(`/proc/${pid}/smaps_rollup`, 'latin1');
        return Number(/^Pss:\s+(\d+)/m.exec(text)[1]);
    } catch {
        return 0;
    }
}

async function until(what, condition, seconds = 60) {
    const end = Date.now() + seconds * 1000;
    while (!(await condition())) {
        if (Date.now() > end)
            throw new Error(`timed out: ${what}`);
        await new Promise((done) => setTimeout(done, 50));
    }
}

async function freePort() {
    const server = createServer();
    await new Promise((done) => server.listen(0, '127.0.0.1', done));
    const { port } = server.address();
    await new Promise((done) => server.close(done));
    return port;
}

/* What a proxy says on its stderr is in a file for each row. */
const logOf = (number) => join(scratch, `log-${number}`);

function launch(command) {
    const log = openSync(logOf(row), 'a');
    const child = spawn(command[0], command.slice(1),
                        { env: environment(), stdio: ['ignore', 'ignore', log] });
    closeSync(log);
    return child;
}

/* A proxy that had errors was not measured at its best. */
function proxyErrors() {
    const text = existsSync(logOf(row)) ? readFileSync(logOf(row), 'utf8') : '';
    return text.split('\n').filter((line) => /error|fail|exception|exited/i.test(line));
}

async function session(transport) {
    const client = new Client({ name: 'session', version: '1' });
    await client.connect(transport);
    if ((await client.listTools()).tools.length === 0)
        throw new Error('no tools');
    return client;
}

const overStdio = (command) =>
    session(new StdioClientTransport({ command: command[0], args: command.slice(1),
                                       env: environment(), stderr: 'ignore' }));
const overHttp = (url) => session(new StreamableHTTPClientTransport(new URL(url)));

/* One proxy for each server, ready to be connected to. */
async function proxies(command) {
    const urls = {};
    for (const [name, server] of Object.entries(servers)) {
        const port = await freePort();
        launch(command(port, server));
        urls[name] = `http://127.0.0.1:${port}/mcp`;
        await until(name, async () => {
            const answer = await fetch(urls[name]).catch(() => null);
            await answer?.body?.cancel();
            return answer !== null;
        });
    }
    return urls;
}

const mcpProxy = (port, server) => [bin('mcp-proxy'), '--host', '127.0.0.1', '--port', `${port}`,
                                    '--server', 'stream', '--', ...server];
const supergateway = (port, server) => [bin('supergateway'), '--stdio', server.join(' '),
                                        '--outputTransport', 'streamableHttp', '--stateful',
                                        '--port', `${port}`];
const throughFront = (url) => overStdio([bin('supergateway'), '--streamableHttp', url]);

const rows = {
    'each session its own servers': async () => (name) => overStdio(servers[name]),
    'stdio_bus --share': async () => (name) =>
        overStdio([process.env.STDIO_BUS, '--share', '--idle-exit', '2', '--', ...servers[name]]),
    'mcp-proxy, sessions by URL': async () => {
        const urls = await proxies(mcpProxy);
        return (name) => overHttp(urls[name]);
    },
    'mcp-proxy, supergateway as stdio front': async () => {
        const urls = await proxies(mcpProxy);
        return (name) => throughFront(urls[name]);
    },
    'supergateway --stateful, sessions by URL': async () => {
        const urls = await proxies(supergateway);
        return (name) => overHttp(urls[name]);
    },
};

async function measure(title, prepare) {
    row++;
    const clients = [];
    const start = Date.now();
    try {
        const connect = await prepare();
        for (let i = 0; i < SESSIONS; i++)
            for (const name of Object.keys(servers))
                clients.push(await connect(name));
        const seconds = (Date.now() - start) / 1000;
        const pids = processes();
        const [error] = proxyErrors();
        if (error)
            throw new Error(`in the log of a proxy: ${error}`);
        const mebibytes = pids.reduce((sum, pid) => sum + memory(pid), 0) / 1024;
        console.log(`${title.padEnd(42)} ${String(pids.length).padStart(9)} ` +
                    `${mebibytes.toFixed(0).padStart(6)} MiB ${seconds.toFixed(1).padStart(6)} s`);
    } catch (error) {
        console.log(`${title.padEnd(42)} failed: ${error.message}`);
        failed = true;
    }
    await Promise.all(clients.map((client) => client.close().catch(() => {})));
    for (const signal of ['SIGTERM', 'SIGKILL']) {
        for (const pid of processes()) {
            try {
                process.kill(pid, signal);
            } catch (error) {
                if (error.code !== 'ESRCH')
                    throw error;
            }
        }
        await until('the end', () => processes().length === 0, 10).catch(() => {});
    }
}

console.log(`${SESSIONS} sessions, ${Object.keys(servers).length} servers`.padEnd(42) +
            ' processes     memory     time');
for (const [title, prepare] of Object.entries(rows))
    if (!process.argv[2] || title.includes(process.argv[2]))
        await measure(title, prepare);
rmSync(scratch, { recursive: true, force: true });
process.exit(failed ? 1 : 0);
