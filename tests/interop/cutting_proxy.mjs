// A proxy between clients of HTTP and a server that cuts event streams: each at a random byte after
// its first event, with both connections. Other answers pass as they are.

import { once } from 'node:events';
import net from 'node:net';

// A generator of numbers from 0 to 1, the same ones for the same seed.
function random(seed) {
    let state = seed >>> 0;
    return () => {
        state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
        return state / 2 ** 32;
    };
}

export class CuttingProxy {
    // A stream is cut after at most `most` bytes behind its first event. INTEROP_SEED says where.
    static async start(t, target, most, seed = Number(process.env.INTEROP_SEED ?? 1)) {
        const proxy = new CuttingProxy();
        proxy.target = target;
        proxy.most = most;
        proxy.random = random(seed);
        proxy.cuts = 0;
        proxy.sockets = new Set();
        proxy.listener = net.createServer((socket) => proxy.#serve(socket));
        proxy.listener.listen(0, '127.0.0.1');
        await once(proxy.listener, 'listening');
        proxy.url = `http://127.0.0.1:${proxy.listener.address().port}/mcp`;
        t.diagnostic(`seed of the cuts: ${seed}`);
        t.after(() => {
            proxy.listener.close();
            proxy.sockets.forEach((socket) => socket.destroy());
        });
        return proxy;
    }

    #serve(client) {
        const [host, port] = this.target.split(':');
        const server = net.connect({ host, port: Number(port), noDelay: true });
        let seen = ''; // of an answer, until its first event is complete
        let left = Infinity; // bytes to the cut

        for (const [socket, other] of [[client, server], [server, client]]) {
            this.sockets.add(socket);
            socket.on('error', () => {});
            socket.on('close', () => {
                this.sockets.delete(socket);
                other.destroy();
            });
        }
        client.setNoDelay();
        client.on('data', (chunk) => { // a request: the last answer was complete
            seen = '';
            left = Infinity;
            server.write(chunk);
        });
        client.on('end', () => server.end());
        server.on('end', () => client.end());
        server.on('data', (chunk) => {
            if (left === Infinity) {
                seen = (seen + chunk.toString('latin1')).slice(-8192);
                const stream = seen.match(/content-type: text\/event-stream[^]*?\r\n\r\n/i);
                const first = stream && /\n\n/.exec(seen.slice(stream.index + stream[0].length));
                if (first)
                    left = Math.floor(this.random() * this.most);
                client.write(chunk);
                return;
            }
            if (chunk.length <= left) {
                left -= chunk.length;
                client.write(chunk);
                return;
            }
            this.cuts++;
            client.end(chunk.subarray(0, left), () => client.destroy());
            server.destroy();
            left = 0;
        });
    }
}
