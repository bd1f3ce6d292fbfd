// A worker that reads lines, for editors as clients. Methods: echo answers with its params, count
// with the number of notifications so far; all others get an error.

import { createInterface } from 'node:readline';

let notifications = 0;

function answerTo({ method, params }) {
    if (method === 'echo')
        return { result: params };
    if (method === 'count')
        return { result: notifications };
    return { error: { code: -32601, message: `no method ${method}`, data: [method] } };
}

createInterface({ input: process.stdin }).on('line', (line) => {
    const message = JSON.parse(line);
    if (message.id === undefined)
        notifications++;
    else
        console.log(JSON.stringify({ jsonrpc: '2.0', id: message.id, ...answerTo(message) }));
});
