// Texts that are JSON or nearly JSON, made from a seed: the same seed makes the same texts.

const MAX_DEPTH = 1024;
const ROUTING_KEYS = ['id', 'sessionId', 'method', 'pool', 'result', 'error'];
const OTHER_KEYS = ['jsonrpc', 'params', '', 'i', 'idd', 'ID', 'Id', 'sessionid', 'sessionID',
    'SessionId', 'Method', 'methods', 'POOL', 'poo', 'Result', 'errors', '__proto__', 'toString'];
const RAW_CHARACTERS = ['\u007f', '\u0080', '\u00e9', '\u07ff', '\u0800', '\u2028', '\u20ac',
    '\ud7ff', '\ue000', '\ufeff', '\uffff', '\u{10000}', '\u{1f600}', '\u{10ffff}'];
const ESCAPES = ['\\"', '\\\\', '\\/', '\\b', '\\f', '\\n', '\\r', '\\t', '\\u0000', '\\u001F',
    '\\u0061', '\\u00e9', '\\u20AC', '\\ud83d\\ude00', '\\uD800', '\\udfff', '\\uDC00\\uD800',
    '\\ud83dx', '\\ud83d\\n', '\\uFFFF', '\\ud83d\\ud83d\\ude00'];
const NUMBERS = ['0', '-0', '1', '1.0', '1e0', '10e-1', '100E-2', '0.0', '-0e5', '0e99999999999',
    '1.5', '-1.50', '1e5', '1E+5', '1e-5', '12.340e1', '12.34e+002', '9007199254740993',
    '9007199254740992', '-9223372036854775808', '18446744073709551616', '1e400', '-1e400', '1e127',
    '1e128', '12e127', '1e129', '1e999999999999999999', '1e1000000000000000000', '1e-400',
    '1e0000000000000000000001', '0.1e1', '0.01e+1', '5e-324'];
const LITERALS = ['true', 'false', 'null'];
const NOT_JSON = ['NaN', 'Infinity', 'undefined', "'a'", '01', '+1', '.5', '1.', '1e', '0x1', 'nul',
    'True', '"\t"', '"\u0000"', '"\\x"', '"\\u12g4"', '"\\u12"', '"a', '[1,]', '{"a":1,}', '{,}',
    '{a:1}', '[1 2]', '{"a" 1}', '/**/1', '\u00a01', '\ufeff1', '\v1', '\f1', '1_0', ''];
const BAD_UTF8 = [[0x80], [0xbf], [0xc0, 0x80], [0xc1, 0xbf], [0xc3], [0xe0, 0x80, 0x80],
    [0xe0, 0x9f, 0xbf], [0xe2, 0x82], [0xe2], [0xed, 0xa0, 0x80], [0xed, 0xbf, 0xbf],
    [0xed, 0xa0, 0xbd, 0xed, 0xb8, 0x80], [0xf0, 0x80, 0x80, 0x80], [0xf0, 0x8f, 0xbf, 0xbf],
    [0xf0, 0x9f, 0x98], [0xf0, 0x9f], [0xf0], [0xf4, 0x90, 0x80, 0x80], [0xf5, 0x80, 0x80, 0x80],
    [0xf8, 0x88, 0x80, 0x80, 0x80], [0xfe], [0xff], [0xef, 0xbb, 0xbf]];
const WELL_CHOSEN_BYTES = Buffer.from('{}[]:,"\\ \t\r\n0159-+.eEtfnu/\u0000\u001f\u007f');

export class TextMaker {
    constructor(seed, handMade) {
        this.state = seed >>> 0;
        this.handMade = handMade;
    }

    // A text as a Buffer: well-formed, or damaged at byte level.
    next() {
        const text = this.chance(0.03) ? this.pick(this.handMade) : Buffer.from(this.text());
        return this.chance(0.5) ? text : this.damaged(text);
    }

    random() {
        this.state = (this.state + 0x6d2b79f5) >>> 0;
        let x = this.state;
        x = Math.imul(x ^ (x >>> 15), x | 1);
        x ^= x + Math.imul(x ^ (x >>> 7), x | 61);
        return ((x ^ (x >>> 14)) >>> 0) / 4294967296;
    }

    chance(probability) { return this.random() < probability; }
    below(count) { return Math.floor(this.random() * count); }
    pick(list) { return list[this.below(list.length)]; }

    // 0 to about `most` times, small numbers more often.
    times(most, make) {
        const count = Math.floor(this.random() ** 3 * (most + 1));
        return Array.from({ length: count }, make);
    }

    space() {
        if (this.chance(0.8))
            return '';
        return this.times(40, () => this.pick([' ', ' ', '\t', '\r'])).join('') + ' ';
    }

    character() {
        const kind = this.random();
        if (kind < 0.7)
            return this.pick('abcXYZ019 _-:,{}[]\'');
        return this.pick(kind < 0.85 ? RAW_CHARACTERS : ESCAPES);
    }

    string(most = 40) {
        const text = this.times(most, () => this.character()).join('');
        return `"${text}${this.chance(0.2) ? 'x'.repeat(this.below(70)) : ''}"`;
    }

    // About as long as allowed, sometimes exactly as long.
    longString(limit) {
        const length = limit + this.below(7) - 3;
        const [unit, bytes] = this.pick([['a', 1], ['\u00e9', 2], ['\u20ac', 3], ['\u{1f600}', 4],
            ['\\n', 1], ['\\u0061', 1], ['\\ud83d\\ude00', 4], ['\\uD800', 3]]);
        return `"${unit.repeat(length / bytes)}${'z'.repeat(length % bytes)}"`;
    }

    key() {
        const name = this.pick(this.chance(0.6) ? ROUTING_KEYS : OTHER_KEYS);
        if (this.chance(0.1))
            return this.string();
        return `"${this.chance(0.8) ? name : this.escaped(name)}"`;
    }

    escaped(name) {
        return [...name].map((c) => {
            const hex = c.charCodeAt(0).toString(16).padStart(4, '0');
            return this.chance(0.5) ? c : `\\u${this.chance(0.5) ? hex : hex.toUpperCase()}`;
        }).join('');
    }

    digits(most) {
        return String(this.below(9) + 1) + this.times(most, () => this.below(10)).join('');
    }

    number() {
        if (this.chance(0.5))
            return this.pick(NUMBERS);
        const fraction = this.chance(0.3) ?
            `.${this.times(20, () => this.below(10)).join('')}0` : '';
        const exponent = this.chance(0.3) ? this.pick(['e', 'E', 'e+', 'E-', 'e-']) +
            this.pick(['0', '1', '2', '00', '12', '127', '300', this.digits(25)]) : '';
        const most = this.chance(0.1) ? 200 : 25;
        return this.pick(['', '', '-']) + this.digits(most) + fraction + exponent;
    }

    longNumber() {
        const digits = '1'.repeat(120 + this.below(16));
        return this.pick([digits, `-${digits}`, `0.${digits}`, `${digits}e1`, `${digits}0e-1`]);
    }

    scalar() {
        return this.pick([() => this.string(), () => this.number(), () => this.pick(LITERALS)])();
    }

    value(depth = 0) {
        if (depth > 4 || this.chance(0.6))
            return this.chance(0.01) ? this.pick(NOT_JSON) : this.scalar();
        return this.chance(0.5) ? this.object(depth + 1) : this.array(depth + 1);
    }

    array(depth) {
        const values = this.times(6, () => this.space() + this.value(depth) + this.space());
        return `[${values.join(',') || this.space()}]`;
    }

    object(depth) {
        const members = this.times(5, () => this.member(this.key(), this.value(depth)));
        return `{${members.join(',') || this.space()}}`;
    }

    member(key, value) {
        return this.space() + key + this.space() + ':' + this.space() + value + this.space();
    }

    // `depth` nested levels, some with siblings.
    nest(depth) {
        let before = '', after = '';
        for (let i = 0; i < depth; i++) {
            const object = this.chance(0.5);
            before += object ? '{"id":' : this.pick(['[', '[', '[1,', '[[],', '[{},']);
            after = (object ? this.pick(['}', '}', ',"id":2}', ',"a":[]}']) : ']') + after;
        }
        return before + this.pick(['1', '[]', '{}', '"]"']) + after;
    }

    routingValue(name) {
        if (name === 'id')
            return this.pick([() => this.string(), () => this.number(), () => this.number(),
                () => this.longString(128), () => this.longNumber(), () => this.value()])();
        if (name === 'sessionId' || name === 'pool')
            return this.pick([() => this.string(), () => this.string(),
                () => this.longString(256), () => this.value()])();
        return this.pick([() => this.string(), () => this.value()])();
    }

    routingMember(name) {
        const key = this.chance(0.9) ? name : this.escaped(name);
        return this.member(`"${key}"`, this.routingValue(name));
    }

    // The members of real messages, in any order, some twice.
    message() {
        const members = [];
        for (const name of ROUTING_KEYS) {
            if (this.chance(0.5))
                members.push(this.routingMember(name));
            if (this.chance(0.1))
                members.push(this.routingMember(name));
        }
        members.push(...this.times(4, () => this.member(this.key(), this.value())));
        members.sort(() => this.random() - 0.5);
        return `{${members.join(',') || this.space()}}`;
    }

    text() {
        const kind = this.random();
        const space = this.space();
        if (kind < 0.85)
            return space + this.message() + this.space();
        if (kind < 0.92)
            return space + this.object(0) + this.space();
        if (kind < 0.93)
            return `{${this.key()}:${this.nest(MAX_DEPTH - 5 + this.below(8))}}`;
        if (kind < 0.94)
            return `{${this.key()}:${this.nest(this.below(200))}}`;
        if (kind < 0.96)
            return space;
        return this.chance(0.5) ? this.value() : this.pick(NOT_JSON);
    }

    damaged(text) {
        let damaged = text;
        do {
            damaged = this.pick(DAMAGES)(this, damaged, this.below(damaged.length + 1));
        } while (this.chance(0.3));
        return damaged;
    }
}

// Replaces `count` bytes of the text at `at` by `bytes`.
function spliced(text, at, count, bytes) {
    return Buffer.concat([text.subarray(0, at), Buffer.from(bytes), text.subarray(at + count)]);
}

const DAMAGES = [
    (maker, text, at) => spliced(text, at, 1, []),
    (maker, text, at) => spliced(text, at, 1 + maker.below(8), []),
    (maker, text, at) => spliced(text, at, 2, [...text.subarray(at, at + 2)].reverse()),
    (maker, text, at) => spliced(text, at, 1, [maker.below(256)]),
    (maker, text, at) => spliced(text, at, maker.below(2), [maker.pick(WELL_CHOSEN_BYTES)]),
    (maker, text, at) => text.subarray(0, at),
    (maker, text, at) => spliced(text, at, 0, maker.pick(BAD_UTF8)),
    (maker, text, at) => spliced(text, at, maker.below(3), maker.pick(BAD_UTF8)),
    (maker, text, at) => spliced(text, at, 0, text.subarray(at, at + maker.below(20))),
    (maker, text, at) => spliced(text, at, 0, maker.text()),
    (maker, text, at) => spliced(text, at, 0, maker.pick(RAW_CHARACTERS)),
    (maker, text, at) => spliced(text, at, 0, maker.pick(NOT_JSON)),
];
