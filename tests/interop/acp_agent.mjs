// An ACP agent, made with the official library. The text of a prompt is JSON with its orders:
//
//   {"say": TEXT, "chunks": N}     streams "TEXT 0", "TEXT 1" ...
//   {"permission": TEXT}           asks for permission for TEXT, then sends the choice
//   {"read": PATH}                 asks the client for the file, then sends its content
//   {"wait": true}                 continues once it is cancelled
//
// in this order. Sessions are files in the directory ACP_STATE, so that they outlive the process;
// session/load replays them. `authenticate` asks for a name.

import { Readable, Writable } from 'node:stream';

import * as acp from '@agentclientprotocol/sdk';

import { Store } from './acp_store.mjs';

const store = new Store(process.env.ACP_STATE);
const turns = new Map(); // session -> AbortController of its prompt

async function say(client, sessionId, text) {
    const update = { sessionUpdate: 'agent_message_chunk', content: { type: 'text', text } };
    store.append(sessionId, update);
    await client.notify(acp.methods.client.session.update, { sessionId, update });
}

async function askPermission(client, sessionId, title, signal) {
    const { outcome } = await client.request(acp.methods.client.session.requestPermission, {
        sessionId,
        toolCall: { toolCallId: 'call-1', title },
        options: [{ kind: 'allow_once', name: 'Allow', optionId: `allow ${title}` },
            { kind: 'reject_once', name: 'Reject', optionId: 'reject' }],
    }, { cancellationSignal: signal });
    return outcome.outcome === 'selected' ? outcome.optionId : outcome.outcome;
}

function aborted(signal) {
    return new Promise((resolve) => signal.addEventListener('abort', resolve, { once: true }));
}

async function turn(client, sessionId, script, signal) {
    for (let i = 0; i < (script.chunks ?? 0); i++) {
        await say(client, sessionId, `${script.say} ${i}`);
        await new Promise((resolve) => setImmediate(resolve));
    }
    if (script.permission)
        await say(client, sessionId, await askPermission(client, sessionId, script.permission,
            signal));
    if (script.read) {
        const { content } = await client.request(acp.methods.client.fs.readTextFile,
            { sessionId, path: script.read });
        await say(client, sessionId, content);
    }
    if (script.wait && !signal.aborted)
        await aborted(signal);
}

async function prompt({ params, client, signal }) {
    const { sessionId, prompt: [{ text }] } = params;
    const controller = new AbortController();
    turns.set(sessionId, controller);
    signal.addEventListener('abort', () => controller.abort());
    await turn(client, sessionId, JSON.parse(text), controller.signal);
    turns.delete(sessionId);
    if (signal.aborted)
        throw acp.RequestError.requestCancelled();
    return { stopReason: controller.signal.aborted ? 'cancelled' : 'end_turn' };
}

async function load({ params, client }) {
    const { sessionId } = params;

    for (const update of store.read(sessionId))
        await client.notify(acp.methods.client.session.update, { sessionId, update });
    return {};
}

function cancel({ params: { sessionId } }) {
    store.noteCancel(sessionId);
    turns.get(sessionId)?.abort();
}

// The user logs in: outside of sessions a question names the request that it serves.
async function logIn({ params, client }) {
    const { action, content } = await client.request(acp.methods.client.elicitation.create, {
        mode: 'form', message: params.methodId, requestId: client.requestId,
        requestedSchema: { type: 'object', properties: { name: { type: 'string' } } } });
    return { _meta: { answer: `${action} ${content.name}` } };
}

const { initialize, authenticate, session } = acp.methods.agent;
const connection = acp.agent({ name: 'interop-agent' })
    .onRequest(initialize, () => ({ protocolVersion: acp.PROTOCOL_VERSION,
        agentCapabilities: { loadSession: true }, _meta: { pid: process.pid } }))
    .onRequest(session.new, () => ({ sessionId: store.create() }))
    .onRequest(authenticate, logIn)
    .onRequest(session.load, load)
    .onRequest(session.prompt, prompt)
    .onNotification(session.cancel, cancel)
    .connect(acp.ndJsonStream(Writable.toWeb(process.stdout), Readable.toWeb(process.stdin)));

await connection.closed;
