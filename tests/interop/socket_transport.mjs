// A transport of the official MCP client: a socket, Unix ("/path") or TCP ("host:port").

import net from 'node:net';

import { ReadBuffer, serializeMessage } from '@modelcontextprotocol/sdk/shared/stdio.js';

export function connectTo(address) {
    const colon = address.lastIndexOf(':');
    const socket = address.includes('/') ? net.connect(address) :
        net.connect({ host: address.slice(0, colon), port: Number(address.slice(colon + 1)),
            noDelay: true });
    return new Promise((resolve, reject) => {
        socket.once('connect', () => resolve(socket)).once('error', reject);
    });
}

export class SocketTransport {
    constructor(address) {
        this.address = address;
    }

    async start() {
        const buffer = new ReadBuffer({ maxBufferSize: 1 << 26 });
        this.socket = await connectTo(this.address);
        this.socket.on('data', (chunk) => {
            buffer.append(chunk);
            for (let message; (message = buffer.readMessage()) !== null;)
                this.onmessage?.(message);
        });
        this.socket.on('error', (error) => this.onerror?.(error));
        this.socket.on('close', () => this.onclose?.());
    }

    send(message) {
        return new Promise((resolve, reject) => {
            this.socket.write(serializeMessage(message),
                (error) => error ? reject(error) : resolve());
        });
    }

    async close() {
        const closed = new Promise((resolve) => this.socket.once('close', resolve));
        this.socket.end();
        await closed;
    }
}
