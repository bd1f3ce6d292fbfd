// A real nats-server for tests. `skip` is the reason why there is none, or false.

import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';

const env = { ...process.env, PATH: `${process.env.PATH}:/usr/sbin` };

export const skip = spawnSync('nats-server', ['-v'], { env }).error
    ? 'nats-server is not installed' : false;

// Resolves when it is ready.
export async function startServer(t, port) {
    const server = spawn('nats-server', ['-a', '127.0.0.1', '-p', `${port}`],
        { env, stdio: ['ignore', 'ignore', 'pipe'] });
    const exit = once(server, 'exit');

    t.after(() => server.kill('SIGKILL'));
    await new Promise((resolve, reject) => {
        server.stderr.on('data', (chunk) => /Server is ready/.test(chunk) && resolve());
        exit.then(() => reject(new Error('nats-server has ended')));
    });
    return { stop: async () => { server.kill('SIGTERM'); await exit; } };
}
