#!/usr/bin/env python3
"""sample.py BUILD-DIRECTORY [COUNT [SEED]]: one-line mutants of src, in the form of sample.txt.

Takes each folder of src twice, and then draws folders by the square root of their lines; draws a
file of the folder by its lines, then a line and a change. A change that does not compile, or that
leaves the compiler's output as it was, is drawn again. The same sources and seed give the same
mutants.
"""
import os
import random
import re
import subprocess
import sys

# Lines that a mutant would change in wording or debug checks only.
SKIPPED = re.compile(r'^\s*(#|/\*|\*|//|ASSERT|(static )?const char|static const|typedef|extern)|'
                     r'log_\w+\(|"|\belse\b\s*$|/\*.*\*/\s*$|\bgoto\b|^\s*case\b|^\s*default\b')
CALL = re.compile(r'^\s+[a-z]\w*\([^{}]*\);$')
RELATIONS = {'<': '<=', '<=': '<', '>': '>=', '>=': '>', '==': '!=', '!=': '=='}
# Changes that no test can notice.
EQUIVALENT = {
    ('src/event/poll.c', 'left >= 0'),  # as many are found as poll() has counted
    ('src/rmp/msgpack.c', 'return true;'),  # after a switch over all values
    ('src/event/signals.c', 'signals->fd = -2;'),  # any negative number
    ('src/http/event_reader.c', 'if (size >= reader->size) {'),  # the same size is allocated again
}


def sources(top):
    """The C files of each folder, with their lines."""
    folders = {}
    for folder, _, names in sorted(os.walk(os.path.join(top, 'src'))):
        for name in sorted(n for n in names if n.endswith('.c')):
            if name in ('kqueue.c',) or folder.endswith('src'):
                continue  # not compiled here; main programs
            path = os.path.relpath(os.path.join(folder, name), top)
            with open(os.path.join(top, path), encoding='utf-8') as file:
                lines = file.read().split('\n')
            folders.setdefault(os.path.dirname(path), []).append((path, lines))
    return folders


def mutations(line):
    """The changes of a line: names of operators, and what becomes of the line."""
    found = []

    def add(operator, start, end, text):
        found.append((operator, line[:start] + text + line[end:]))

    for match in re.finditer(r'(?<= )(<=|>=|==|!=|<|>)(?= )', line):
        add('relation', match.start(), match.end(), RELATIONS[match.group()])
    for match in re.finditer(r'(?<= )(&&|\|\|)(?= )', line):
        add('connective', match.start(), match.end(), '||' if match.group() == '&&' else '&&')
    match = re.match(r'^(\s*(?:\} else )?(?:if|while) )\((.*)\)( \{)?$', line)
    if match and match.group(2).count('(') == match.group(2).count(')'):
        add('negation', match.end(1), match.end(2) + 1, '(!(' + match.group(2) + '))')
    for match in re.finditer(r'(?<= )([+-])(?= )', line):
        add('sign', match.start(), match.end(), '-' if match.group() == '+' else '+')
    declares_array = re.match(r'^\s+[\w *]+\[\w+\];$', line)
    for match in re.finditer(r"(?<![\w.\]'])(\d+)(?![\w.'])", '' if declares_array else line):
        add('number', match.start(), match.end(), str(int(match.group()) + 1))
    for match in re.finditer(r'\b(true|false)\b', line):
        add('truth', match.start(), match.end(), 'false' if match.group() == 'true' else 'true')
    match = re.match(r'^(\s+return )(?!0;)(?!NULL)(?!true)(?!false)(.+);$', line)
    if match:
        add('result', match.start(2), match.end(2), '0')
    if CALL.match(line):
        add('call', len(line) - len(line.lstrip()), len(line), ';')
    match = re.match(r'^\s+\S.* (\+=|-=) .*;$', line)
    if match:
        add('sign', match.start(1), match.end(1), '-=' if match.group(1) == '+=' else '+=')
    return found


def assembly(compiler, top, path, text):
    """What the compiler makes of the text; None if it does not compile."""
    command = compiler + ['-w', '-S', '-O1', '-g0', '-o', '-', '-x', 'c', '-iquote',
                          os.path.join(top, os.path.dirname(path)), '-']
    run = subprocess.run(command, input=text, capture_output=True, text=True, check=False)
    return run.stdout if run.returncode == 0 else None


def is_in_function(lines, number):
    """Whether the line is inside a function: what begins at the margin before it is a brace."""
    for line in reversed(lines[:number]):
        if line and not line[0].isspace():
            return line == '{'
    return False


def draw(dice, folders, count):
    names = sorted(folders)
    weights = [sum(len(lines) for _, lines in folders[name]) ** 0.5 for name in names]
    turns = names + names
    files = folders[turns[count] if count < len(turns) else dice.choices(names, weights)[0]]
    path, lines = dice.choices(files, [len(lines) for _, lines in files])[0]
    number = dice.randrange(len(lines))
    if SKIPPED.search(lines[number]) or not is_in_function(lines, number):
        return None
    found = mutations(lines[number])
    return (path, lines, number, dice.choice(found)[1]) if found else None


def main():
    if not 2 <= len(sys.argv) <= 4:
        sys.exit(__doc__)
    build = sys.argv[1]
    count, seed = [int(word) for word in (sys.argv[2:] + ['40', '27'][len(sys.argv) - 2:])]
    top = os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', '..')
    compiler = ['gcc', '-std=c99', '-DHAVE_CONFIG_H', '-I' + build, '-I' + os.path.join(top, 'src')]
    dice = random.Random(seed)
    folders = sources(top)
    seen = set()
    while len(seen) < count:
        drawn = draw(dice, folders, len(seen))
        if drawn is None or drawn[:1] + drawn[2:3] in seen:
            continue
        path, lines, number, new = drawn
        if any(path == same and text in new for same, text in EQUIVALENT):
            continue
        changed = lines[:number] + [new] + lines[number + 1:]
        after = assembly(compiler, top, path, '\n'.join(changed))
        if after is None or after == assembly(compiler, top, path, '\n'.join(lines)):
            continue
        old = lines[number].strip()
        occurrence = sum(old in line for line in lines[:number + 1])
        unique = occurrence == 1 and sum(old in line for line in lines) == 1
        seen.add((path, number))
        print(f'm{len(seen):02} {path}{"" if unique else "#" + str(occurrence)}')
        print(f'- {old}\n+ {new.strip()}\n')


main()
