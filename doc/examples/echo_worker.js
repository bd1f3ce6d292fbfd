#!/usr/bin/env node
// echo_worker: a minimal worker in JavaScript.
//
// Reads one JSON object per line from stdin and answers each request with its own process id and
// the request itself. Diagnostics go to stderr, never to stdout. Ends at the end of its input or
// on SIGTERM.

const lines = require('node:readline').createInterface({ input: process.stdin });

function answerTo(request) {
    const { id, sessionId } = request;
    const result = { pid: process.pid, echo: request };
    return { jsonrpc: '2.0', id, sessionId, result }; // an absent sessionId stays absent
}

lines.on('line', (line) => {
    const message = JSON.parse(line);
    // A request has an id and a method; other messages get no answer.
    if (message.id != null && 'method' in message) {
        process.stdout.write(JSON.stringify(answerTo(message)) + '\n');
    }
});

process.on('SIGTERM', () => process.exit(0));
console.error(`echo_worker.js[${process.pid}]: ready`);
