#!/usr/bin/env python3
"""wheel.py: a wheel with one program for one kind of machine, made without a compiler.

pip and others copy the program into the directory of commands; no Python runs when it does. The
same input makes the same bits; SOURCE_DATE_EPOCH is the time of the files. Prints the file's name
and size.
"""

import argparse
import base64
import hashlib
import os
import time
import zipfile

# The name of the package as a command. It is found beside the program, also where both are links.
COMMAND = '#!/bin/sh\nexec "${0%%/*}/%s" "$@"\n'

METADATA = '''Metadata-Version: 2.4
Name: {name}
Version: {version}
Summary: {summary}
Project-URL: Homepage, {url}
License-Expression: MIT
{licenses}Keywords: mcp,acp,lsp,stdio,json-rpc
Requires-Python: >=3.6
Description-Content-Type: text/markdown

{readme}'''

WHEEL = '''Wheel-Version: 1.0
Generator: stdio_bus
Root-Is-Purelib: false
{tags}'''


def read(path):
    with open(path, 'rb') as file:
        return file.read()


def contents(options, prefix):
    """Yields path, bytes and mode of each file."""
    program = os.path.basename(options.program)
    yield f'{prefix}.data/scripts/{program}', read(options.program), 0o755
    if options.name != program:
        yield f'{prefix}.data/scripts/{options.name}', (COMMAND % program).encode(), 0o755
    info = f'{prefix}.dist-info'
    names = [os.path.basename(path) for path in options.licenses]
    for path, name in zip(options.licenses, names):
        yield f'{info}/licenses/{name}', read(path), 0o644
    metadata = METADATA.format(
        name=options.name, version=options.version, summary=options.summary, url=options.url,
        licenses=''.join(f'License-File: {name}\n' for name in names),
        readme=read(options.readme).decode())
    yield f'{info}/METADATA', metadata.encode(), 0o644
    tags = ''.join(f'Tag: py3-none-{tag}\n' for tag in options.tags.split('.'))
    yield f'{info}/WHEEL', WHEEL.format(tags=tags).encode(), 0o644


def record_line(path, data):
    digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b'=').decode()
    return f'{path},sha256={digest},{len(data)}\n'


def write_wheel(options):
    prefix = f'{options.name.replace("-", "_")}-{options.version}'
    wheel = os.path.join(options.out, f'{prefix}-py3-none-{options.tags}.whl')
    date = time.gmtime(int(os.environ['SOURCE_DATE_EPOCH']))[:6]
    record = ''
    with zipfile.ZipFile(wheel, 'w', zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        def add(path, data, mode):
            entry = zipfile.ZipInfo(path, date)
            entry.create_system = 3  # Unix: the mode counts
            entry.external_attr = (0o100000 | mode) << 16
            entry.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(entry, data)

        for path, data, mode in contents(options, prefix):
            add(path, data, mode)
            record += record_line(path, data)
        path = f'{prefix}.dist-info/RECORD'
        add(path, (record + f'{path},,\n').encode(), 0o644)
    return wheel


def main():
    parser = argparse.ArgumentParser()
    for option in ('name', 'version', 'tags', 'summary', 'url', 'readme', 'out'):
        parser.add_argument(f'--{option}', required=True)
    parser.add_argument('--licenses', nargs='+', required=True)
    parser.add_argument('program')
    options = parser.parse_args()
    wheel = write_wheel(options)
    print(f'{os.path.basename(wheel)}: {os.path.getsize(wheel)} bytes')


if __name__ == '__main__':
    main()
