/* Processes and memory of ten sessions with five MCP servers, and with thirteen of which three are
 * called: each session with servers of its own, and through programs that share them. Run by
 * run.sh; needs Linux's /proc. A session is a client of the official library that has listed the
 * tools of each server and stays connected. The memory is the sum of the proportional shares (PSS)
 * of all processes that the sessions have caused, without the clients themselves, which are in this
 * process. Arguments: a part of a row's title, and a number of servers. */
import { spawn } from 'node:child_process';
import { closeSync, existsSync, openSync, readFileSync, rmSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import {
    bin, calls, environmentOf, five, processesOf, scratch, thirteen, until,
} from './servers.mjs';

const SESSIONS = Number(process.env.SESSIONS ?? 10);
let servers;

let row = 0;
let failed = false;
const environment = () => environmentOf(row);
const processes = () => processesOf(row);

function memory(pid) {
    try {
        const text = readFileSync(`/proc/${pid}/smaps_rollup`, 'latin1');
        return Number(/^Pss:\s+(\d+)/m.exec(text)[1]);
    } catch {
        return 0;
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

const itself = async () => (name) => overStdio(servers[name]);
const shared = (...options) => async () => (name) =>
    overStdio([process.env.STDIO_BUS, '--share', ...options, '--', ...servers[name]]);

/* Another session came before: what its servers answered is remembered. They sleep, or their
 * daemons have ended too. */
const remembered = (rest, left, ...options) => async () => {
    const connect = await shared(...options)();
    for (const name of Object.keys(servers))
        await (await connect(name)).close();
    await until(rest, () => processes().length === left());
    return connect;
};

const byUrl = async () => {
    const urls = await proxies(mcpProxy);
    return (name) => overHttp(urls[name]);
};

const tables = [
    {
        servers: five,
        calls: {},
        rows: {
            'each session its own servers': itself,
            'stdio_bus --share': shared('--idle-exit', '2'),
            'mcp-proxy, sessions by URL': byUrl,
            'mcp-proxy, supergateway as stdio front': async () => {
                const urls = await proxies(mcpProxy);
                return (name) => throughFront(urls[name]);
            },
            'supergateway --stateful, sessions by URL': async () => {
                const urls = await proxies(supergateway);
                return (name) => overHttp(urls[name]);
            },
        },
    },
    {
        servers: thirteen,
        calls,
        rows: {
            'each session its own servers': itself,
            'stdio_bus --share, for the first time': shared('--idle-exit', '2'),
            'stdio_bus --share --idle-stop 1, later': remembered('all servers sleep',
                () => Object.keys(servers).length, '--idle-stop', '1'),
            'stdio_bus --share, a later day': remembered('all daemons have ended', () => 0,
                '--idle-exit', '2'),
            'mcp-proxy, sessions by URL': byUrl,
        },
    },
];

/* The servers of a session are started together, as hosts do, and then a few are called. */
async function connectAll(connect) {
    const clients = [];
    for (let i = 0; i < SESSIONS; i++)
        clients.push(Object.fromEntries(await Promise.all(
            Object.keys(servers).map(async (name) => [name, await connect(name)]))));
    return clients;
}

async function callAll(sessions, calls) {
    for (const [name, call] of Object.entries(calls))
        await Promise.all(sessions.map(async (session) => {
            const result = await session[name].callTool(call);
            if (result.isError)
                throw new Error(`${name}: ${JSON.stringify(result.content)}`);
        }));
}

const parent = (pid) => {
    try {
        return Number(readFileSync(`/proc/${pid}/stat`, 'latin1').split(') ')[1].split(' ')[1]);
    } catch {
        return 0;
    }
};

const sum = (pids) => pids.reduce((total, pid) => total + memory(pid), 0) / 1024;

async function measure(title, prepare, calls) {
    row++;
    let sessions = [];
    try {
        const connect = await prepare();
        const start = Date.now();
        sessions = await connectAll(connect);
        const seconds = (Date.now() - start) / 1000;
        await callAll(sessions, calls);
        const pids = processes();
        const [error] = proxyErrors();
        if (error)
            throw new Error(`in the log of a proxy: ${error}`);
        const own = pids.filter((pid) => parent(pid) === process.pid);
        console.log(`${title.padEnd(42)} ${String(pids.length).padStart(9)} ` +
                    `${sum(pids).toFixed(0).padStart(6)} MiB ${seconds.toFixed(1).padStart(6)} s` +
                    `   without the ${own.length} started by clients: ` +
                    `${pids.length - own.length}, ` +
                    `${sum(pids.filter((pid) => !own.includes(pid))).toFixed(0)} MiB`);
    } catch (error) {
        console.log(`${title.padEnd(42)} failed: ${error.message}`);
        failed = true;
    }
    const clients = sessions.flatMap((session) => Object.values(session));
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

const [part = '', count] = process.argv.slice(2);
for (const table of tables) {
    servers = table.servers;
    const number = Object.keys(servers).length;
    if (count && number !== Number(count))
        continue;
    console.log(`${SESSIONS} sessions, ${number} servers, ` +
                `${Object.keys(table.calls).length} called`.padEnd(17) +
                ' processes     memory     time');
    for (const [title, prepare] of Object.entries(table.rows))
        if (title.includes(part))
            await measure(title, prepare, table.calls);
}
rmSync(scratch, { recursive: true, force: true });
process.exit(failed ? 1 : 0);
