/* Servers that clients connect to and do not call: whether they are started, and how soon a client
 * has its first answer. Run by run.sh with the argument `uncalled`; arguments: how often each
 * client connects (100), and a part of a server's name. Each of thirteen MCP servers is shared by
 * clients of both official libraries that connect, list the tools, and leave. After the first of
 * each its process ends, and none may be started until one client calls. Then ten clients call at
 * once, and one process may be started for them. Exits with status 1 where that is not so. The
 * server filesystem asks its client for roots at once, so it is started by a first handshake. */
import { readFileSync, readdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { Client as First } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import { Client as Second } from '@modelcontextprotocol/client';
import {
    StdioClientTransport as SecondTransport,
} from '@modelcontextprotocol/client/stdio';
import { calls, environmentOf, processesOf, scratch, thirteen, until } from './servers.mjs';

const [times = '100', part = ''] = process.argv.slice(2);
const AT_ONCE = 10;
const asks = ['filesystem'];
const name = { name: 'uncalled', version: '1' };
const libraries = {
    '1.x': [StdioClientTransport, () => new First(name)],
    '2.x': [SecondTransport, () => new Second(name)],
    '2.x, either era': [SecondTransport,
                        () => new Second(name, { versionNegotiation: { mode: 'auto' } })],
};

const processes = () => processesOf(0);
const logs = join(scratch, 'stdio_bus');

/* How often processes of servers were started, as the logs of their daemons have it. */
function starts() {
    return readdirSync(logs).filter((file) => file.endsWith('.log'))
        .map((file) => readFileSync(join(logs, file), 'utf8'))
        .reduce((sum, text) => sum + (text.match(/^.*\[worker=.*\] started /gm) ?? []).length, 0);
}

async function connect(library, server) {
    const [Transport, create] = libraries[library];
    const client = create();
    await client.connect(new Transport({
        command: process.env.STDIO_BUS,
        args: ['--share', '--idle-stop', '1', '--', ...server],
        env: environmentOf(0),
        stderr: 'ignore',
    }));
    return client;
}

async function look(library, server) {
    const begin = performance.now();
    const client = await connect(library, server);
    const connected = performance.now();
    const { tools } = await client.listTools();
    const listed = performance.now();
    await client.close();
    if (tools.length === 0)
        throw new Error('no tools');
    return [connected - begin, listed - connected];
}

const median = (numbers) => numbers.sort((a, b) => a - b)[numbers.length >> 1];

async function lookOften(title, library, server) {
    const before = starts();
    const took = [];
    for (let i = 0; i < Number(times); i++)
        took.push(await look(library, server));
    const started = starts() - before;
    console.log(`${title.padEnd(21)} ${library.padEnd(16)} ` +
                `${median(took.map(([ms]) => ms)).toFixed(1).padStart(7)} ms ` +
                `${median(took.map(([, ms]) => ms)).toFixed(1).padStart(6)} ms ` +
                `${String(started).padStart(6)}`);
    return started === 0 || asks.includes(title);
}

/* Ten clients that call at once, if the server can be called without a key. */
async function callAtOnce(title, server) {
    if (!(title in calls))
        return true;
    const before = starts();
    const clients = await Promise.all(Array.from({ length: AT_ONCE }, (_, i) =>
        connect(Object.keys(libraries)[i % 2], server)));
    const results = await Promise.all(clients.map((client) => client.callTool(calls[title])));
    await Promise.all(clients.map((client) => client.close()));
    const started = starts() - before;
    const wrong = results.filter(({ isError }) => isError).length;
    console.log(`${title.padEnd(21)} ${AT_ONCE} call at once: ${started} started, ` +
                `${wrong} wrong answers`);
    return started === 1 && wrong === 0;
}

let good = true, daemons = 0;
console.log(`each client ${times} times          connected   listed  starts`);
for (const [title, server] of Object.entries(thirteen)) {
    if (!title.includes(part))
        continue;
    daemons++; /* each stays, with a server that sleeps */
    const sleeps = () => until(`${title} sleeps`, () => processes().length === daemons);
    for (const library of Object.keys(libraries))
        await look(library, server);
    for (const library of Object.keys(libraries)) {
        await sleeps();
        good = await lookOften(title, library, server) && good;
    }
    await sleeps();
    good = await callAtOnce(title, server) && good;
}
for (const pid of processes())
    process.kill(pid, 'SIGTERM');
await until('the end', () => processes().length === 0);
rmSync(scratch, { recursive: true, force: true });
process.exit(good ? 0 : 1);
