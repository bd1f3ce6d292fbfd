// A client without a library: one JSON object per line over a Unix socket.

import net from 'node:net';
import { createInterface } from 'node:readline';

export class RawClient {
    constructor(socket) {
        this.socket = socket;
        this.waiting = new Map(); // id -> [resolve, reject]
        this.strays = []; // answers to no open request
        createInterface({ input: socket }).on('line', (line) => this.#received(JSON.parse(line)));
        socket.on('close', () => {
            for (const [, reject] of this.waiting.values())
                reject(new Error('the connection was closed before the answer'));
        });
    }

    // Connects as soon as the daemon listens.
    static async connect(path, deadline_ms = 10000) {
        const end = Date.now() + deadline_ms;
        for (;;) {
            const socket = net.connect(path);
            const error = await new Promise((resolve) => {
                socket.once('connect', () => resolve(null)).once('error', resolve);
            });
            if (error === null)
                return new RawClient(socket);
            if (Date.now() > end)
                throw error;
            await new Promise((resolve) => setTimeout(resolve, 50));
        }
    }

    // Resolves with the complete answer, error or result.
    request(id, method, params) {
        const answer = new Promise((resolve, reject) => this.waiting.set(id, [resolve, reject]));
        this.#send({ jsonrpc: '2.0', id, method, params });
        return answer;
    }

    notify(method) {
        this.#send({ jsonrpc: '2.0', method });
    }

    close() {
        this.socket.end();
    }

    #send(message) {
        this.socket.write(JSON.stringify(message) + '\n');
    }

    #received(message) {
        if (!this.waiting.has(message.id)) {
            this.strays.push(message);
            return;
        }
        const [resolve] = this.waiting.get(message.id);
        this.waiting.delete(message.id);
        resolve(message);
    }
}
