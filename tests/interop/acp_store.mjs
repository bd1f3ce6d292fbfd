// The sessions of an ACP agent: files in a directory, so that they outlive the process. Tests read
// there when a session was cancelled.

import { randomUUID } from 'node:crypto';
import fs from 'node:fs';
import path from 'node:path';

export class Store {
    constructor(dir) {
        this.dir = dir;
    }

    #file(sessionId) {
        return path.join(this.dir, `${sessionId}.ndjson`);
    }

    #cancels(sessionId) {
        return path.join(this.dir, `${sessionId}.cancelled`);
    }

    create() {
        const sessionId = randomUUID();
        fs.writeFileSync(this.#file(sessionId), '');
        return sessionId;
    }

    append(sessionId, update) {
        fs.appendFileSync(this.#file(sessionId), `${JSON.stringify(update)}\n`);
    }

    // The updates so far.
    read(sessionId) {
        const lines = fs.readFileSync(this.#file(sessionId), 'utf8').split('\n');
        return lines.filter((line) => line !== '').map((line) => JSON.parse(line));
    }

    noteCancel(sessionId) {
        fs.appendFileSync(this.#cancels(sessionId), `${Date.now()}\n`);
    }

    // When the agent was told to cancel the session, in milliseconds.
    cancels(sessionId) {
        if (!fs.existsSync(this.#cancels(sessionId)))
            return [];
        return fs.readFileSync(this.#cancels(sessionId), 'utf8').trim().split('\n').map(Number);
    }
}
