#!/usr/bin/env python3
"""signature.py PROGRAM...: whether the ad hoc signatures of programs for macOS are right.

That system kills a program for arm64 whose pages do not have the hashes that its signature says.
One for x86_64 needs no signature.
"""
import hashlib
import struct
import sys

MAGIC_64 = 0xfeedfacf
CPU_ARM64 = 0x0100000c
LC_CODE_SIGNATURE = 0x1d
CODE_DIRECTORY = 0xfade0c02
SHA256 = 2


def signature_range(program):
    """Where the signature is: offset and size; None without one."""
    magic, cpu, _, _, commands, _, _, _ = struct.unpack_from('<8I', program)
    if magic != MAGIC_64:
        raise ValueError('no 64-bit Mach-O')
    at = 32
    for _ in range(commands):
        command, size = struct.unpack_from('<2I', program, at)
        if command == LC_CODE_SIGNATURE:
            return struct.unpack_from('<2I', program, at + 8)
        at += size
    if cpu == CPU_ARM64:
        raise ValueError('it has no signature')
    return None


def check(program):
    """Raises ValueError with what is wrong."""
    found = signature_range(program)
    if found is None:
        return
    start, size = found
    if start + size != len(program):
        raise ValueError('its signature is not at the end')
    blob = program[start:]
    _, _, count = struct.unpack_from('>3I', blob)
    offsets = [struct.unpack_from('>2I', blob, 12 + 8 * i)[1] for i in range(count)]
    directories = [at for at in offsets if struct.unpack_from('>I', blob, at)[0] == CODE_DIRECTORY]
    if not directories:
        raise ValueError('its signature has no hashes')
    at = directories[0]
    hashes, _, _, slots, limit = struct.unpack_from('>5I', blob, at + 16)
    hash_size, kind, _, page_bits = struct.unpack_from('>4B', blob, at + 36)
    page = 1 << page_bits
    if kind != SHA256 or limit != start or slots != -(-limit // page):
        raise ValueError('its signature is not of this program')
    for slot in range(slots):
        wanted = blob[at + hashes + slot * hash_size:][:hash_size]
        part = program[slot * page:min((slot + 1) * page, limit)]
        if hashlib.sha256(part).digest() != wanted:
            raise ValueError(f'page {slot} is not the one that was signed')


def main():
    """The exit status is 1 if a program is not right."""
    status = 0
    for path in sys.argv[1:]:
        with open(path, 'rb') as file:
            program = file.read()
        try:
            check(program)
        except (ValueError, struct.error) as error:
            print(f'{path}: {error}')
            status = 1
    return status


if __name__ == '__main__':
    sys.exit(main())
