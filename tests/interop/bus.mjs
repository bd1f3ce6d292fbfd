// The daemon in the interop tests: its configuration is in a directory of the test, and all its
// processes and files must be gone at the end.

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import fs from 'node:fs';
import net from 'node:net';
import os from 'node:os';
import path from 'node:path';

import { leftOf, processTree } from './processes.mjs';

export const daemon = process.env.STDIO_BUS;

// With INTEROP_QUICK=yes fewer clients are many, and what another test shows in another way is left
// out: the same over TCP as over a Unix socket, for one.
export const quick = process.env.INTEROP_QUICK === 'yes';
export const again = quick && 'INTEROP_QUICK';
export const MANY = quick ? 4 : 20;
export const MODES = quick ? ['unix'] : ['unix', 'tcp'];

// Waits until the condition holds; `what` says what it is if it never does.
export async function eventually(condition, what) {
    for (const end = Date.now() + 30000; !condition();) {
        assert.ok(Date.now() < end, what());
        await new Promise((resolve) => setTimeout(resolve, 10));
    }
}

// A port of 127.0.0.1 that nothing listens on.
export async function freePort() {
    const server = net.createServer().listen(0, '127.0.0.1');
    await once(server, 'listening');
    const { port } = server.address();
    server.close();
    await once(server, 'close');
    return port;
}

// Enough for the largest messages of the tests, and for the connections of 20 clients of HTTP.
const limits = { max_input_buffer: 1 << 24, max_output_queue: 1 << 25, max_connections: 4096 };

// A directory, removed at the end of the program: a daemon may write what it remembers when the
// clients of the test have left.
const workplaces = [];

process.on('exit', () => {
    for (const dir of workplaces) {
        try {
            fs.rmSync(dir, { recursive: true, force: true, maxRetries: 20 });
        } catch (error) {
            console.error(`${dir} stays: ${error.message}`);
        }
    }
});

export function workplace() {
    const dir = fs.mkdtempSync(path.join(os.tmpdir(), 'stdio_bus_interop.'));
    workplaces.push(dir);
    return dir;
}

// The path of a configuration with this pool, and with other keys of the file.
export function configure(dir, pool, keys = {}) {
    const config = path.join(dir, 'config.json');
    fs.writeFileSync(config, JSON.stringify({ pools: [{ id: 'pool', instances: 1, ...pool }],
        limits, ...keys }));
    return config;
}

export class Bus {
    // `mode` is unix, tcp or http. Resolves once the daemon listens.
    static async start(t, pool, mode, keys) {
        const bus = new Bus();
        const dir = workplace();
        const at = { unix: path.join(dir, 'bus.sock'), tcp: ':0', http: '127.0.0.1:0' }[mode];

        bus.log = '';
        bus.process = spawn(daemon, ['--config', configure(dir, pool, keys), `--${mode}`, at],
            { stdio: ['ignore', 'inherit', 'pipe'] });
        bus.exit = once(bus.process, 'exit');
        t.after(() => bus.process.kill('SIGKILL'));
        await new Promise((resolve, reject) => {
            bus.process.stderr.on('data', (chunk) => {
                bus.log += chunk;
                const port = bus.log.match(/listening on (?:http:\/\/)?127\.0\.0\.1:(\d+)/);
                bus.address = port ? `127.0.0.1:${port[1]}` : at;
                bus.url = `http://${bus.address}/mcp`;
                if (/listening on /.test(bus.log))
                    resolve();
            });
            bus.exit.then(() => reject(new Error(`the daemon has ended:\n${bus.log}`)));
        });
        return bus;
    }

    workers() {
        return processTree(this.process.pid).slice(1);
    }

    // Resolves when a line of the log matches.
    async logged(pattern, deadline_ms = 20000) {
        const end = Date.now() + deadline_ms;
        while (!pattern.test(this.log)) {
            assert.ok(Date.now() < end, `not in the log: ${pattern}\n${this.log}`);
            await new Promise((resolve) => setTimeout(resolve, 20));
        }
    }

    async stop() {
        const pids = processTree(this.process.pid);

        this.process.kill('SIGTERM');
        assert.deepEqual(await this.exit, [0, null], 'exit status and signal');
        assert.deepEqual(await leftOf(pids), [], 'processes left');
        assert.ok(!this.address.includes('/') || !fs.existsSync(this.address), 'a socket is left');
    }
}

// Runs the test; shows the daemon's log if it fails.
export async function withBus(t, pool, mode, run, keys) {
    const bus = await Bus.start(t, pool, mode, keys);
    try {
        await run(bus);
        await bus.stop();
    } catch (error) {
        console.error(bus.log.split('\n').slice(-60).join('\n'));
        throw error;
    }
}
