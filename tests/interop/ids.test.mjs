// Ids on their way through libraries for JSON that workers use: node's, python's, json-c and
// jansson. What a library writes for an id that the daemon accepts is JSON, and the same id to the
// daemon, except for the ids that doc/protocol.md advises against. In the environment:
//
//   PARSERS_IDS     number of ids made at random     (20000)
//   PARSERS_SEED    their seed                       (the time)

import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';

import { scannerSays } from './scan_texts.mjs';
import { TextMaker } from './text_maker.mjs';

const count = Number(process.env.PARSERS_IDS ?? 20000);
const seed = Number(process.env.PARSERS_SEED ?? Date.now() % 1000000);
const script = fileURLToPath(new URL('round_trip.py', import.meta.url));
const skipped = 77;

const CHOSEN = ['0', '-0', '1', '-1', '0.1e1', '1e0', '1.50', '0.1', '0.10000000000000000001',
    '1e-400', '-1e-400', '5e-324', '3e-324', '2e-324', '1e21', '1e22', '1e23', '1e127', '1e128',
    '1e300', '1.7976931348623157e308', '1.7976931348623158e308', '1.7976931348623159e308', '1e309',
    '1e400', '-1e400', '1e99999999999999999999', '9007199254740991', '9007199254740992',
    '9007199254740993', '-9007199254740993', '9007199254740993.0', '9223372036854775807',
    '9223372036854775808', '-9223372036854775808', '-9223372036854775809', '18446744073709551615',
    '18446744073709551616', '123456789012345678901234567890', '4503599627370496.5', '""', '"1"',
    '"\\u0000"', '"\\ud800"', '"\\udc00\\ud800"', '"\\ud83d\\ude00"', '"\\/"', '"\u2028"'];

const LONE_SURROGATE = /\p{Surrogate}/u;

function asInteger(id) {
    return /^-?\d+$/.test(id) ? BigInt(id) : undefined;
}

function beyond(id, least, most) {
    const integer = asInteger(id);
    return integer !== undefined && (integer < least || integer > most);
}

function hasSurrogate(id) {
    return id.startsWith('"') && LONE_SURROGATE.test(JSON.parse(id));
}

function hasNul(id) {
    return id.startsWith('"') && JSON.parse(id).includes('\0');
}

// For each library: what it writes for each line, and the ids that it changes.
const libraries = {
    'node': {
        write: (lines) => lines.map((line) => JSON.stringify(JSON.parse(line))),
        changes: (id) => beyond(id, -(2n ** 53n), 2n ** 53n),
    },
    'python': { changes: () => false },
    'json-c': { changes: (id) => beyond(id, -(2n ** 63n), 2n ** 64n - 1n) || hasSurrogate(id) },
    'jansson': {
        changes: (id) => beyond(id, -(2n ** 63n), 2n ** 63n - 1n) || hasSurrogate(id) || hasNul(id),
    },
};

// Undefined: the library is not installed.
function roundTrip(name, lines) {
    const { write } = libraries[name];
    if (write !== undefined)
        return write(lines);
    const { status, stdout, stderr } = spawnSync('python3', [script, name],
        { input: lines.join('\n'), maxBuffer: 2 ** 30 });
    if (status === skipped)
        return undefined;
    assert.equal(status, 0, String(stderr));
    return stdout.toString().trimEnd().split('\n');
}

// The id of each line as the daemon compares it; undefined if it refuses the line.
function idsOf(lines) {
    return scannerSays(lines.map((line) => Buffer.from(line))).map((said) => {
        const [verdict, , problem, , id] = said.split(' ');
        return verdict === 'message' && problem === '0' ? id : undefined;
    });
}

// Any double, in any number of digits.
function anyDouble(maker) {
    const bits = new DataView(new ArrayBuffer(8));
    bits.setUint32(0, maker.below(2 ** 32));
    bits.setUint32(4, maker.below(2 ** 32));
    const value = bits.getFloat64(0);
    return Number.isFinite(value) ? value.toPrecision(1 + maker.below(25)) : '1e308';
}

function makeIds() {
    const maker = new TextMaker(seed, []);
    const kinds = [() => maker.number(), () => maker.longNumber(), () => anyDouble(maker),
        () => maker.string(), () => String(maker.below(2 ** 32))];
    return Array.from({ length: count }, () => maker.pick(kinds)());
}

const candidates = [...CHOSEN, ...makeIds()];
const lineOf = (id) => `{"id":${id}}`;
const verdicts = idsOf(candidates.map(lineOf));
const accepted = candidates.map((id, i) => ({ id, compared: verdicts[i] }))
    .filter(({ compared }) => compared !== undefined);

test('a number beyond all doubles is refused', () => {
    candidates.forEach((id, i) => {
        if (/^-?\d.*[.eE]/.test(id) && !Number.isFinite(Number(id)))
            assert.equal(verdicts[i], undefined, id);
    });
});

for (const [name, { changes }] of Object.entries(libraries)) {
    test(`${accepted.length} ids made from seed ${seed} pass through ${name}`, (t) => {
        const written = roundTrip(name, accepted.map(({ id }) => lineOf(id)));
        if (written === undefined) {
            t.skip('not installed');
            return;
        }
        const read = idsOf(written);
        let changed = 0;
        accepted.forEach(({ id, compared }, i) => {
            if (changes(id)) {
                changed++;
                assert.ok(written[i] === 'refused' || read[i] !== undefined,
                    `seed ${seed}: ${name} turns ${id} into ${written[i]}`);
            } else {
                assert.equal(read[i], compared, `seed ${seed}: ${name} turns ${id} into ` +
                    written[i]);
            }
        });
        t.diagnostic(`${changed} of these are advised against`);
    });
}
