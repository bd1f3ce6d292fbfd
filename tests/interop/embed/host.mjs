// host.mjs LIBRARY TEST_WORKER REQUESTS: a bus in a program of Node.js, by koffi. Requests in
// sessions: each gets its own answer, each session keeps its worker. libuv waits for the poll_fd
// only in an addon, so the program steps between two turns of its loop while answers are due.
import assert from 'node:assert'
import process from 'node:process'
import koffi from 'koffi'

const [, , library, worker, requests] = process.argv
const SESSIONS = 16, WINDOW = 32, OK = 0, STOPPED = 4
const wanted = Number(requests)

const lib = koffi.load(library)
koffi.opaque('stdio_bus')
const messageCallback = koffi.proto(
    'void message_cb(stdio_bus *bus, void *msg, size_t len, void *user_data)')
koffi.proto('void text_cb(stdio_bus *bus, int code, const char *text, void *user_data)')
koffi.struct('listener_config', {
    mode: 'int', tcp_host: 'const char *', tcp_port: 'uint16_t', unix_path: 'const char *',
})
koffi.struct('options', {
    config_path: 'const char *', config_json: 'const char *', listener: 'listener_config',
    on_message: 'message_cb *', on_error: 'text_cb *', on_log: 'text_cb *',
    on_worker: 'text_cb *', on_client_connect: 'text_cb *', on_client_disconnect: 'text_cb *',
    user_data: 'void *', log_level: 'int',
})
const create = lib.func('stdio_bus *stdio_bus_create(const options *options)')
const start = lib.func('int stdio_bus_start(stdio_bus *bus)')
const step = lib.func('int stdio_bus_step(stdio_bus *bus, int timeout_ms)')
const stop = lib.func('int stdio_bus_stop(stdio_bus *bus, int timeout_sec)')
const destroy = lib.func('void stdio_bus_destroy(stdio_bus *bus)')
const ingest = lib.func('int stdio_bus_ingest(stdio_bus *bus, const char *msg, size_t len)')
const getState = lib.func('int stdio_bus_get_state(const stdio_bus *bus)')

const answered = new Set(), pids = new Map()

function take(message) {
    const n = message.id
    assert.equal(message.result.params.own, `n${n}`, "another request's answer")
    assert(!answered.has(n), `request ${n} was answered twice`)
    answered.add(n)
    const session = n % SESSIONS
    const { pid } = message.result
    assert.equal(pids.get(session) ?? pid, pid, 'the session has moved')
    pids.set(session, pid)
}

const onMessage = koffi.register((_bus, msg, len, _user) => {
    take(JSON.parse(koffi.decode(msg, 'char', Number(len))))
}, koffi.pointer(messageCallback))

const bus = create({
    config_path: null,
    config_json: JSON.stringify({ pools: [{ id: 'echo', command: worker, instances: 4 }] }),
    listener: { mode: 0, tcp_host: null, tcp_port: 0, unix_path: null },
    on_message: onMessage,
    on_error: null, on_log: null, on_worker: null, on_client_connect: null,
    on_client_disconnect: null,
    user_data: null,
    log_level: 2,
})
assert(bus !== null && start(bus) === OK, 'the bus cannot be started')

let sent = 0
const deadline = Date.now() + 120_000

function turn() {
    assert(Date.now() < deadline, `${answered.size} answers in time`)
    while (sent < wanted && sent - answered.size < WINDOW) {
        const text = JSON.stringify({
            id: sent, sessionId: `s${sent % SESSIONS}`, method: 'echo', params: { own: `n${sent}` },
        })
        assert.equal(ingest(bus, text, Buffer.byteLength(text)), OK)
        sent++
    }
    assert(step(bus, 10) >= 0)
    if (answered.size === wanted)
        stop(bus, -1)
    if (getState(bus) !== STOPPED) {
        setImmediate(turn)
        return
    }
    destroy(bus)
    koffi.unregister(onMessage)
    console.log(`${answered.size} requests in ${pids.size} sessions`)
}

turn()
