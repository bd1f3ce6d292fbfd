// A user of the official ACP client, with some sessions. Messages for sessions of other users are
// kept in `strays`.

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { Duplex, Readable, Writable } from 'node:stream';

import * as acp from '@agentclientprotocol/sdk';

import { connectTo } from './socket_transport.mjs';

// One end of a conversation: its stream, and a function that ends it.
export async function overSocket(address) {
    const socket = await connectTo(address);
    const { writable, readable } = Duplex.toWeb(socket);
    return { stream: acp.ndJsonStream(writable, readable),
        close: () => { socket.destroy(); return 0; } };
}

export function overProcess(command, args, env = {}) {
    const child = spawn(command, args, { stdio: ['pipe', 'pipe', 'ignore'],
        env: { ...process.env, ...env } });
    const exit = new Promise((resolve) => child.once('exit', resolve));
    return { stream: acp.ndJsonStream(Writable.toWeb(child.stdin), Readable.toWeb(child.stdout)),
        close: () => { child.stdin.end(); return exit; } };
}

const { initialize, authenticate, session } = acp.methods.agent;

export class AcpPerson {
    constructor(name) {
        this.name = name;
        this.heard = new Map(); // session -> texts
        this.permissions = [];
        this.elicited = []; // parameters
        this.sent = []; // messages
        this.strays = [];
        this.answersPermission = true;
    }

    async connect(end) {
        this.end = await end;
        const { readable, writable } = this.end.stream;
        const tap = new TransformStream({ transform: (message, to) => {
            this.sent.push(message);
            to.enqueue(message);
        } });
        tap.readable.pipeTo(writable).catch(() => {});
        this.connection = this.app().connect({ readable, writable: tap.writable });
        this.agent = this.connection.agent;
        await this.initialize();
        return this;
    }

    app() {
        const { session: own, fs, elicitation } = acp.methods.client;

        return acp.client({ name: this.name })
            .onNotification(own.update, ({ params }) => this.update(params))
            .onRequest(own.requestPermission, (context) => this.permission(context))
            .onRequest(fs.readTextFile, ({ params }) => this.#read(params))
            .onRequest(elicitation.create, ({ params }) => this.elicit(params));
    }

    async initialize() {
        const hello = await this.agent.request(initialize, {
            protocolVersion: acp.PROTOCOL_VERSION,
            clientCapabilities: { fs: { readTextFile: true, writeTextFile: false } } });
        assert.equal(hello.agentCapabilities.loadSession, true);
        this.pid = hello._meta.pid;
    }

    async close() {
        assert.equal(await this.end.close(), 0, 'exit status');
        assert.deepEqual(this.strays, [], `${this.name} got what is for others`);
    }

    own(params) {
        if (!this.heard.has(params.sessionId))
            this.strays.push(params);
        return this.heard.get(params.sessionId) ?? [];
    }

    update(params) {
        this.own(params).push(params.update.content.text);
    }

    async permission({ params, signal }) {
        this.own(params);
        this.permissions.push(params.toolCall?.title ?? params.title);
        if (!this.answersPermission) {
            await new Promise((resolve) => signal.addEventListener('abort', resolve));
            return { outcome: { outcome: 'cancelled' } };
        }
        return { outcome: { outcome: 'selected', optionId: params.options[0].optionId } };
    }

    #read(params) {
        this.own(params);
        return { content: `${this.name} has ${params.path}` };
    }

    elicit(params) {
        this.elicited.push(params);
        return { action: 'accept', content: { name: this.name } };
    }

    // Resolves with what the agent was told by this client, in the course of this request.
    async logIn(method = authenticate) {
        const { _meta } = await this.agent.request(method, { methodId: 'form' });
        const own = this.sent.filter((message) => message.method === method).map(({ id }) => id);
        assert.deepEqual(this.elicited.map(({ requestId }) => requestId), own);
        return _meta.answer;
    }

    async newSession() {
        const { sessionId } = await this.agent.request(session.new,
            { cwd: '/tmp', mcpServers: [] });
        this.heard.set(sessionId, []);
        return sessionId;
    }

    async load(sessionId) {
        this.heard.set(sessionId, []);
        await this.agent.request(session.load, { sessionId, cwd: '/tmp', mcpServers: [] });
    }

    // The texts received in the session since the last call.
    texts(sessionId) {
        return this.heard.get(sessionId).splice(0);
    }

    async prompt(sessionId, script, options) {
        const { stopReason } = await this.agent.request(session.prompt,
            { sessionId, prompt: [{ type: 'text', text: JSON.stringify(script) }] }, options);
        return stopReason;
    }

    cancel(sessionId) {
        return this.agent.notify(session.cancel, { sessionId });
    }

    async hears(sessionId, text, deadline_ms = 20000) {
        const end = Date.now() + deadline_ms;
        while (!this.heard.get(sessionId).includes(text)) {
            assert.ok(Date.now() < end, `${this.name} does not hear ${text}`);
            await new Promise((resolve) => setTimeout(resolve, 10));
        }
    }

    async asked(count, deadline_ms = 20000) {
        const end = Date.now() + deadline_ms;
        while (this.permissions.length < count) {
            assert.ok(Date.now() < end, `${this.name} is not asked`);
            await new Promise((resolve) => setTimeout(resolve, 10));
        }
    }
}
