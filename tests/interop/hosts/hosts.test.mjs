// The hosts' own health checks, `mcp list`, of one server that is reached in each way. The scripts
// of the packages do not run: the programs that they would have put in place are started directly.

import assert from 'node:assert/strict';
import { execFile, execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import fs from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';
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
        this.home = workplace(t);
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
        return list.split('\n').slice(1).map((line) => line.match(/^\S+ +(\d+) +\d+ +\d/))
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
