// An ACP agent of version 2, made with the official library: as acp_agent.mjs, with the orders
// "say", "chunks", "permission" and "wait". A prompt is answered at once; its turn goes on, and
// ends with the state "idle".

import { randomUUID } from 'node:crypto';
import { Readable, Writable } from 'node:stream';

import * as acp from '@agentclientprotocol/sdk/experimental/v2';

import { Store } from './acp_store.mjs';

const store = new Store(process.env.ACP_STATE);
const turns = new Map(); // session -> AbortController

const update = (client, sessionId, update) =>
    client.notify(acp.methods.client.session.update, { sessionId, update });

async function say(client, sessionId, text) {
    const chunk = { sessionUpdate: 'agent_message_chunk', messageId: randomUUID(),
        content: { type: 'text', text } };
    store.append(sessionId, chunk);
    await update(client, sessionId, chunk);
}

async function askPermission(client, sessionId, title, signal) {
    const { outcome } = await client.request(acp.methods.client.session.requestPermission, {
        sessionId, title,
        options: [{ kind: 'allow_once', name: 'Allow', optionId: `allow ${title}` }],
    }, { cancellationSignal: signal });
    return outcome.outcome === 'selected' ? outcome.optionId : outcome.outcome;
}

async function turn(client, sessionId, script, signal) {
    await update(client, sessionId, { sessionUpdate: 'state_update', state: 'running' });
    for (let i = 0; i < (script.chunks ?? 0); i++) {
        await say(client, sessionId, `${script.say} ${i}`);
        await new Promise((resolve) => setImmediate(resolve));
    }
    if (script.permission)
        await say(client, sessionId, await askPermission(client, sessionId, script.permission,
            signal));
    if (script.wait && !signal.aborted)
        await new Promise((resolve) => signal.addEventListener('abort', resolve, { once: true }));
    turns.delete(sessionId);
    await update(client, sessionId, { sessionUpdate: 'state_update', state: 'idle',
        stopReason: signal.aborted ? 'cancelled' : 'end_turn' });
}

function prompt({ params: { sessionId, prompt: [{ text }] }, client }) {
    const controller = new AbortController();
    turns.set(sessionId, controller);
    // After the answer.
    setImmediate(() => turn(client, sessionId, JSON.parse(text), controller.signal));
    return { messageId: randomUUID() };
}

async function resume({ params: { sessionId, replayFrom }, client }) {
    for (const chunk of replayFrom ? store.read(sessionId) : [])
        await update(client, sessionId, chunk);
    await update(client, sessionId, { sessionUpdate: 'state_update',
        state: turns.has(sessionId) ? 'running' : 'idle' });
    return {};
}

async function logIn({ params, client }) {
    const { action, content } = await client.request(acp.methods.client.elicitation.create, {
        mode: 'form', message: params.methodId, requestId: client.requestId,
        requestedSchema: { type: 'object', properties: { name: { type: 'string' } } } });
    return { _meta: { answer: `${action} ${content.name}` } };
}

function cancel({ params: { sessionId } }) {
    store.noteCancel(sessionId);
    turns.get(sessionId)?.abort();
}

const { initialize, auth, session } = acp.methods.agent;
const connection = acp.agent({ name: 'interop-agent' })
    .onRequest(initialize, () => ({ protocolVersion: acp.PROTOCOL_VERSION,
        info: { name: 'interop-agent', version: '1.0.0' }, capabilities: { session: {} },
        authMethods: [{ type: 'agent', methodId: 'form', name: 'Form' }],
        _meta: { pid: process.pid } }))
    .onRequest(session.new, () => ({ sessionId: store.create() }))
    .onRequest(auth.login, logIn)
    .onRequest(session.resume, resume)
    .onRequest(session.prompt, prompt)
    .onNotification(session.cancel, cancel)
    .connect(acp.ndJsonStream(Writable.toWeb(process.stdout), Readable.toWeb(process.stdin)));

await connection.closed;
