// The scanner against JSON.parse: both accept the same texts and find the same routing fields. The
// additions of scanner.h and message.h to JSON (one line, UTF-8, depth, lengths, equal numbers) are
// implemented here a second time. In the environment:
//
//   PARSERS_TEXTS   number of texts         (200000)
//   PARSERS_SEED    their seed              (the time)

import assert from 'node:assert/strict';
import { test } from 'node:test';

import { runScanTexts, scannerSays } from './scan_texts.mjs';
import { TextMaker } from './text_maker.mjs';

const count = Number(process.env.PARSERS_TEXTS ?? 200000);
const seed = Number(process.env.PARSERS_SEED ?? Date.now() % 1000000);
const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });
const BATCH = 10000;
const MAX_DEPTH = 1024;
const MAX_ID = 128;
const MAX_NAME = 256;

// The texts of tests/data/json_texts.h.
function handMade() {
    const texts = [];
    for (let left = runScanTexts(['--texts']); left.length > 0;) {
        const end = 4 + left.readUInt32BE();
        texts.push(left.subarray(4, end));
        left = left.subarray(end);
    }
    return texts;
}

// The depth of a valid text, and the last top-level value of each key as spelled.
function anatomy(text) {
    const values = new Map();
    let depth = 0, deepest = 0, key, start;

    for (const token of text.matchAll(/"(?:[^"\\]|\\.)*"|[{}[\]:,]|[^\s{}[\]:,"]+/g)) {
        const first = token[0][0];
        if (first === '}' || first === ']')
            depth--;
        if (depth === 1 && key === undefined && first === '"')
            key = JSON.parse(token[0]);
        else if (depth === 1 && first === ':')
            start = token.index + 1;
        if (depth === 0 || (depth === 1 && first === ',')) {
            if (key !== undefined)
                values.set(key, text.slice(start, token.index).trim());
            key = undefined;
        }
        if (first === '{' || first === '[')
            deepest = Math.max(deepest, ++depth);
    }
    return { deepest, values };
}

function parsed(line) {
    const limit = Error.stackTraceLimit;
    Error.stackTraceLimit = 0; // thousands of errors are thrown here
    try {
        const text = utf8.decode(line);
        return { text, value: JSON.parse(text) };
    } catch {
        return {};
    } finally {
        Error.stackTraceLimit = limit;
    }
}

// UTF-8; a lone surrogate has three bytes, too.
function bytesOf(string) {
    if (!/\p{Surrogate}/u.test(string))
        return Buffer.from(string);
    return Buffer.concat([...string].map((c) => {
        const unit = c.charCodeAt(0);
        return c.length === 1 && unit >= 0xd800 && unit <= 0xdfff ?
            Buffer.from([0xe0 | unit >> 12, 0x80 | unit >> 6 & 63, 0x80 | unit & 63]) :
            Buffer.from(c);
    }));
}

// One text for each double, but each integer that is spelled as one is its own text.
function numberText(raw) {
    if (/^-?\d+$/.test(raw))
        return raw === '-0' ? '0' : raw;
    const value = Number(raw);
    if (Number.isSafeInteger(value) || !Number.isInteger(value))
        return String(value);
    const shortest = [15, 16, 17].map((digits) => value.toExponential(digits - 1))
        .find((text) => Number(text) === value);
    const [, sign, first, rest, power] = shortest.match(/^(-?)(\d)\.(\d*)e\+(\d+)$/);
    const digits = (first + rest).replace(/0+$/, '');
    const zeros = Number(power) + 1 - digits.length;
    return sign + digits + (zeros > MAX_ID - digits.length ? `e${zeros}` : '0'.repeat(zeros));
}

// C and JavaScript may differ in the last digit of a fraction, not in the double.
function withNormalFraction(line) {
    return line.replace(/ n=([0-9a-f]+)/, (field, hex) => {
        const text = Buffer.from(hex, 'hex').toString();
        return !/\.|e-/.test(text) ? field :
            ` n=${Buffer.from(String(Number(text))).toString('hex')}`;
    });
}

function routingId(value, raw) {
    if (value === undefined || value === null)
        return { problem: 0 };
    if (typeof value === 'number') {
        if (raw.length > MAX_ID)
            return { problem: 2 };
        return !Number.isFinite(value) && !/^-?\d+$/.test(raw) ? { problem: 3 } :
            { problem: 0, text: `n=${Buffer.from(numberText(raw)).toString('hex')}` };
    }
    if (typeof value !== 'string')
        return { problem: 1 };
    const bytes = bytesOf(value);
    return bytes.length > MAX_ID ? { problem: 2 } :
        { problem: 0, text: `s=${bytes.toString('hex')}` };
}

function routingName(value, typeProblem, lengthProblem) {
    if (value === undefined)
        return { problem: 0 };
    if (typeof value !== 'string')
        return { problem: typeProblem };
    const bytes = bytesOf(value);
    return bytes.length > MAX_NAME ? { problem: lengthProblem } :
        { problem: 0, text: `=${bytes.toString('hex')}` };
}

function unquoted(raw) {
    return `=${Buffer.from(raw.replace(/^"|"$/g, '')).toString('hex')}`;
}

// The expected output of scan_texts for the text, by JSON.parse.
function parserSays(bytes) {
    const newline = bytes.indexOf(10);
    const line = newline < 0 ? bytes : bytes.subarray(0, newline);
    if (line.every((byte) => byte === 32 || byte === 9 || byte === 13))
        return 'blank';
    const { text, value } = parsed(line);
    if (typeof value !== 'object' || value === null || Array.isArray(value))
        return 'invalid';
    const { deepest, values } = anatomy(text);
    if (deepest > MAX_DEPTH)
        return 'invalid';

    const own = (key) => Object.hasOwn(value, key) ? value[key] : undefined;
    for (const key of ['id', 'sessionId', 'method', 'pool']) {
        const raw = values.get(key);
        if (typeof own(key) === 'string' || typeof own(key) === 'number')
            assert.equal(JSON.parse(raw), own(key), 'this test reads the text wrongly');
        else
            assert.equal(raw !== undefined, own(key) !== undefined);
    }
    const id = routingId(own('id'), values.get('id'));
    const session = id.problem ? id : routingName(own('sessionId'), 4, 5);
    const pool = session.problem ? session : routingName(own('pool'), 6, 7);
    const method = !pool.problem && typeof own('method') === 'string' ?
        unquoted(values.get('method')) : undefined;
    const rawId = ['string', 'number'].includes(typeof own('id')) ?
        unquoted(values.get('id')) : '-';
    const response = (own('result') === undefined ? '' : 'r') +
        (own('error') === undefined ? '' : 'e');

    return ['message', line.length + 1, pool.problem, response || '-', id.text ?? '-', rawId,
        id.problem ? '-' : session.text ?? '-', method ?? '-',
        session.problem ? '-' : pool.text ?? '-'].join(' ');
}

// Counts the texts by verdict and problem.
function compare(texts, seen) {
    const said = scannerSays(texts).map(withNormalFraction);
    assert.equal(said.length, texts.length);
    texts.forEach((text, i) => {
        const expected = parserSays(text);
        if (said[i] !== expected) {
            assert.fail(`seed ${seed}\ntext     ${JSON.stringify(text.toString('latin1'))}\n` +
                `scanner  ${said[i]}\nparser   ${expected}`);
        }
        const [verdict, , problem = ''] = expected.split(' ');
        seen[verdict + problem] = (seen[verdict + problem] ?? 0) + 1;
    });
}

test('the texts of tests/data/json_texts.h', () => {
    const seen = {};
    compare(handMade(), seen);
    assert.ok(seen.message0 > 50 && seen.invalid > 100);
});

test(`${count} texts made from seed ${seed}`, (t) => {
    const maker = new TextMaker(seed, handMade());
    const seen = {};
    for (let left = count; left > 0; left -= BATCH)
        compare(Array.from({ length: Math.min(left, BATCH) }, () => maker.next()), seen);
    t.diagnostic(JSON.stringify(seen));
    for (const kind of ['invalid', 'blank', ...Array.from({ length: 8 }, (_, i) => `message${i}`)])
        assert.ok(count < 10000 || seen[kind] > count / 1000, `too few texts: ${kind}`);
    assert.ok(count < 10000 || seen.message0 > count / 10, 'too few messages');
});
