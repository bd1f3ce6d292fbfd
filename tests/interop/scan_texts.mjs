// The program scan_texts, which reports the results of the scanner (scan_texts.c). SCAN_TEXTS in
// the environment is its path.

import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';

const program = process.env.SCAN_TEXTS;

export function runScanTexts(args, input) {
    const { status, stdout } = spawnSync(program, args, { input, maxBuffer: 2 ** 30 });
    assert.equal(status, 0, `${program} failed`);
    return stdout;
}

// A line about each text, a Buffer.
export function scannerSays(texts) {
    const parts = [];
    for (const text of texts) {
        const length = Buffer.alloc(4);
        length.writeUInt32BE(text.length);
        parts.push(length, text);
    }
    return runScanTexts([], Buffer.concat(parts)).toString().trimEnd().split('\n');
}
