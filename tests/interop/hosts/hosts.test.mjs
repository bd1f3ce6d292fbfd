// The hosts' own health checks, `mcp list`, of one server that is reached in each way; the
// configuration that codex writes, as --import reads it; opencode as an agent whose client leaves.
// The scripts of the packages do not run: the programs that they would have put in place are
// started directly.

import assert from 'node:assert/strict';
import { execFile, execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import fs from 'node:fs';
import net from 'node:net';
import path from 'node:path';
import { test } from 'node:test';
import { createInterface } from 'node:readline';
import { promisify } from 'node:util';

import { daemon, workplace } from './bus.mjs';
import { leftOf, processTree } from './processes.mjs';

const run = promisify(execFile);
const timeout = 240000;
const packages = path.resolve('node_modules');
const server = [process.execPath,
    path.join(packages, '@modelcontextprotocol/server-everything/dist/index.js'), 'stdio'];

const write = (file, value) => {
    fs.mkdirSync(path.dirname(file), { recursive: true });
    fs.writeFileSync(file, JSON.stringify(value));
};
const mapped = (ways, make) => Object.fromEntries(
    Object.entries(ways).map(([name, way]) => [name, make(way)]));
const command = ([command, ...args]) => ({ command, args });

// The program of a package for this machine: of opencode one of several for kinds of processors.
function ofThisMachine(scope, prefix, file) {
    const folder = path.join(packages, scope);
    const names = fs.existsSync(folder) ? fs.readdirSync(folder) : [];
    const fits = names.filter((name) =>
        name.startsWith(`${prefix}-${process.platform}-${process.arch}`)).sort();
    return fits.map((name) => path.join(folder, name, file)).filter(fs.existsSync).slice(-1);
}

// `program` is empty if the package is not there. `write` puts the ways into the host's files.
const hosts = {
    'Claude Code': {
        program: ofThisMachine('@anthropic-ai', 'claude-code', 'claude'),
        write: (ways, home) => write(path.join(home, '.claude.json'), { mcpServers:
            mapped(ways, (way) => way.url ? { type: 'http', url: way.url } : command(way)) }),
        well: (name) => new RegExp(`^${name}: .*✔ Connected`, 'm'),
    },
    'gemini-cli': {
        program: [process.execPath, path.join(packages, '@google/gemini-cli/bundle/gemini.js')]
            .filter((part, _, all) => fs.existsSync(all[1])),
        write: (ways, home) => write(path.join(home, '.gemini/settings.json'), {
            security: { folderTrust: { enabled: false } }, mcpServers:
            mapped(ways, (way) => way.url ? { httpUrl: way.url } : command(way)) }),
        well: (name) => new RegExp(`^✓ ${name}: .* - Connected`, 'm'),
    },
    opencode: {
        program: ofThisMachine('', 'opencode', 'bin/opencode'),
        write: (ways, _, project) => write(path.join(project, 'opencode.json'), { mcp:
            mapped(ways, (way) => way.url ? { type: 'remote', url: way.url } :
                { type: 'local', command: way }) }),
        well: (name) => new RegExp(`✓ ${name} +connected`, 'm'),
    },
};

// A home and a project of their own, without the variables of a host that runs the tests.
class Place {
    constructor(t) {
        this.home = workplace();
        this.project = path.join(this.home, 'project');
        fs.mkdirSync(path.join(this.home, 'run'), { mode: 0o700 });
        fs.mkdirSync(this.project);
        this.env = { PATH: process.env.PATH, HOME: this.home, LANG: 'C.UTF-8', TERM: 'dumb',
            XDG_RUNTIME_DIR: path.join(this.home, 'run') };
        t.after(() => this.daemons().forEach((pid) => process.kill(pid, 'SIGKILL')));
    }

    async check(host, ways) {
        const [program, ...args] = hosts[host].program;
        hosts[host].write(ways, this.home, this.project);
        const checking = run(program, [...args, 'mcp', 'list'],
            { cwd: this.project, env: this.env, timeout: 120000 });
        checking.child.stdin.end();
        const { stdout, stderr } = await checking;
        const output = `${stdout}${stderr}`.replace(/\x1b\[[0-9;]*m/g, '');
        for (const name of Object.keys(ways))
            assert.match(output, hosts[host].well(name));
    }

    // The daemons of --share.
    daemons() {
        const list = execFileSync(daemon, ['--list'], { env: this.env, encoding: 'utf8' });
        return list.split('\n').slice(1).map((line) => line.match(/^\S+ +(\d+) +[a-z]/))
            .filter(Boolean).map(([, pid]) => Number(pid));
    }
}

// The daemon with a socket and a URL.
async function serve(t, place) {
    const socket = path.join(place.home, 'bus.sock');
    const bus = spawn(daemon, ['--unix', socket, '--http', '127.0.0.1:0', '--protocol', 'mcp', '--',
        ...server], { env: place.env, stdio: ['ignore', 'ignore', 'pipe'] });
    let log = '';
    t.after(() => bus.kill('SIGKILL'));
    const port = await new Promise((resolve, reject) => {
        bus.stderr.on('data', (chunk) => {
            log += chunk;
            const [, found] = log.match(/HTTP at http:\/\/127\.0\.0\.1:(\d+)/) ?? [];
            if (found)
                resolve(found);
        });
        bus.on('exit', () => reject(new Error(`the daemon has ended:\n${log}`)));
    });
    return { socket, url: `http://127.0.0.1:${port}/mcp`, async stop() {
        const pids = processTree(bus.pid);
        bus.removeAllListeners('exit');
        bus.kill('SIGTERM');
        assert.deepEqual(await once(bus, 'exit'), [0, null]);
        assert.deepEqual(await leftOf(pids), [], 'processes left');
    } };
}

const share = [daemon, '--share', '--', ...server];
const there = Object.keys(hosts).filter((host) => hosts[host].program.length > 0);

for (const host of Object.keys(hosts)) {
    test(`${host} finds a server in each way`, { timeout,
        skip: !there.includes(host) && 'its package is not there for this machine' }, async (t) => {
        const place = new Place(t), bus = await serve(t, place);
        await place.check(host, { share, connect: [daemon, '--connect', bus.socket],
            remote: [daemon, '--connect', bus.url], url: { url: bus.url } });
        await bus.stop();
    });
}

// Each has no capabilities to speak of, and variables of its own.
test('hosts in one directory share one process', { timeout,
    skip: there.length < 2 && 'there is one host at most' }, async (t) => {
    const place = new Place(t);
    await Promise.all(there.map((host) => place.check(host, { share })));
    const [daemons, pids] = [place.daemons(), () => processTree(daemons[0])];
    assert.equal(daemons.length, 1, 'daemons');
    const first = pids();
    assert.equal(first.length, 2, 'a daemon and a server');
    for (const host of there)
        await place.check(host, { share });
    assert.deepEqual(place.daemons(), daemons);
    assert.deepEqual(pids(), first, 'the server is another one');
    process.kill(daemons[0]);
    assert.deepEqual(await leftOf(first), [], 'processes left');
});

// --- codex: its file, as --import reads it ---

const codex = path.join(packages, '@openai/codex/bin/codex.js');

test('the configuration of codex is imported', { timeout,
    skip: !fs.existsSync(codex) && 'its package is not there' }, async (t) => {
    const place = new Place(t), file = path.join(place.home, '.codex/config.toml');
    const mcp = async (...args) => (await run(process.execPath, [codex, 'mcp', ...args],
        { cwd: place.project, env: place.env, timeout: 60000 })).stdout;
    await mcp('add', 'everything', '--env', 'KEY=a "b" \\', '--', ...server);
    await mcp('add', 'shared', '--', ...share);
    await mcp('add', 'remote', '--url', 'http://127.0.0.1:9/mcp');
    assert.match(await mcp('list'), new RegExp(`^shared +${daemon} `, 'm'));
    const { stdout, stderr } = await run(daemon, ['--import', file], { env: place.env });
    assert.match(stderr, /"shared": left alone: it is stdio_bus already/);
    assert.match(stderr, /"remote": in place of its URL and its headers write/);
    const [command, ...args] = server;
    assert.deepEqual(JSON.parse(stdout).pools, [{ id: 'everything', command, args,
        env: { KEY: 'a "b" \\' }, protocol: 'mcp', instances: 16 },
    { id: 'remote', url: 'http://127.0.0.1:9/mcp', protocol: 'mcp', instances: 16 }]);
    const config = path.join(place.home, 'bus.json');
    fs.writeFileSync(config, stdout);
    await run(daemon, ['--config', config, '--check-config', '--strict'], { env: place.env });
});

// --- opencode: an agent whose client leaves ---

// A model that is asked and never answers.
async function muteModel(t) {
    const model = net.createServer(), sockets = [];
    const asked = new Promise((resolve) => model.on('connection', (socket) => {
        sockets.push(socket.on('error', () => {}));
        socket.once('data', resolve);
    }));
    model.listen(0, '127.0.0.1');
    await once(model, 'listening');
    t.after(() => { sockets.forEach((socket) => socket.destroy()); model.close(); });
    return { url: `http://127.0.0.1:${model.address().port}/v1`, asked };
}

class AcpClient {
    constructor(t, place, [command, ...args]) {
        this.child = spawn(command, args, { cwd: place.project, env: place.env,
            stdio: ['pipe', 'pipe', 'ignore'] });
        t.after(() => this.child.kill('SIGKILL'));
        this.waiting = new Map();
        this.child.on('exit', () => this.waiting.forEach(({ reject }) =>
            reject(new Error('the connection has ended'))));
        createInterface({ input: this.child.stdout }).on('line', (line) => {
            const { id, method, result, error } = JSON.parse(line);
            if (method === undefined)
                this.waiting.get(id)?.[error ? 'reject' : 'resolve'](error ?? result);
        });
    }

    send(id, method, params) {
        const answer = new Promise((resolve, reject) => this.waiting.set(id, { resolve, reject }));
        answer.catch(() => {});
        this.child.stdin.write(`${JSON.stringify({ jsonrpc: '2.0', id, method, params })}\n`);
        return answer;
    }

    // Both pipes are closed. Returns the exit status and how many seconds it took.
    async leave() {
        const since = performance.now(), ended = once(this.child, 'exit');
        this.child.stdin.destroy();
        this.child.stdout.destroy();
        const [status] = await ended;
        return { status, seconds: (performance.now() - since) / 1000 };
    }
}

const agent = [...ofThisMachine('', 'opencode', 'bin/opencode'), 'acp'];
const acp = ['--protocol', 'acp'];

for (const [way, status] of [['--share', 0], ['stdio mode', 0], ['--connect', 74]]) {
    test(`a prompt in flight does not keep the client of opencode: ${way}`, { timeout,
        skip: agent.length < 2 && 'its package is not there for this machine' }, async (t) => {
        const place = new Place(t), model = await muteModel(t);
        const socket = path.join(place.home, 'bus.sock');
        const words = { '--share': ['--share', '--idle-exit', '1', ...acp, '--', ...agent],
            'stdio mode': [...acp, '--', ...agent],
            '--connect': ['--connect', socket, '--wait', '20'] };
        write(path.join(place.project, 'opencode.json'), { autoupdate: false, model: 'mute/m',
            small_model: 'mute/m', provider: { mute: { npm: '@ai-sdk/openai-compatible',
                options: { baseURL: model.url, apiKey: 'none' }, models: { m: {} } } } });
        let bus;
        if (way === '--connect') {
            bus = spawn(daemon, ['--unix', socket, ...acp, '--', ...agent],
                { cwd: place.project, env: place.env, stdio: 'ignore' });
            t.after(() => bus.kill('SIGKILL'));
        }
        const client = new AcpClient(t, place, [daemon, ...words[way]]);
        await client.send(1, 'initialize', { protocolVersion: 1, clientCapabilities: {} });
        const { sessionId } = await client.send(2, 'session/new',
            { cwd: place.project, mcpServers: [] });
        client.send(3, 'session/prompt', { sessionId, prompt: [{ type: 'text', text: 'hello' }] });
        await model.asked;
        const pids = processTree(way === '--share' ? place.daemons()[0]
            : bus?.pid ?? client.child.pid);
        const left = await client.leave();
        t.diagnostic(`it took ${left.seconds.toFixed(2)} s`);
        assert.equal(left.status, status);
        assert.ok(left.seconds < 5, `it took ${left.seconds} s`); // 1 s on an idle machine
        bus?.kill('SIGTERM');
        assert.deepEqual(await leftOf(pids), [], 'processes left');
    });
}
