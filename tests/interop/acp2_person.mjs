// A user of the official ACP client, version 2 of the protocol.

import * as acp from '@agentclientprotocol/sdk/experimental/v2';

import { AcpPerson } from './acp_person.mjs';

const { initialize, auth, session } = acp.methods.agent;

export class Acp2Person extends AcpPerson {
    constructor(name) {
        super(name);
        this.ended = new Map(); // session -> called with the reason of the turn's end
    }

    app() {
        const { session: own, elicitation } = acp.methods.client;

        return acp.client({ name: this.name })
            .onNotification(own.update, ({ params }) => this.update(params))
            .onRequest(own.requestPermission, (context) => this.permission(context))
            .onRequest(elicitation.create, ({ params }) => this.elicit(params));
    }

    async initialize() {
        const hello = await this.agent.request(initialize, {
            protocolVersion: acp.PROTOCOL_VERSION, info: { name: this.name, version: '1.0.0' },
            capabilities: { elicitation: { form: {} } } });
        this.pid = hello._meta.pid;
    }

    update(params) {
        const { sessionUpdate, state, stopReason } = params.update;
        if (sessionUpdate !== 'state_update')
            super.update(params);
        else if (this.own(params) && state === 'idle')
            this.ended.get(params.sessionId)?.(stopReason);
    }

    async load(sessionId) {
        this.heard.set(sessionId, []);
        await this.agent.request(session.resume, { sessionId, cwd: '/tmp',
            replayFrom: { type: 'start' } });
    }

    // Resolves at the end of the turn, some time after the answer.
    async prompt(sessionId, script) {
        const end = new Promise((resolve) => this.ended.set(sessionId, resolve));
        await this.agent.request(session.prompt,
            { sessionId, prompt: [{ type: 'text', text: JSON.stringify(script) }] });
        return end;
    }

    logIn() {
        return super.logIn(auth.login);
    }
}
