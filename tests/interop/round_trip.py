"""Reads lines of JSON and writes each as a library for JSON writes it after reading it.

round_trip.py LIBRARY: a text that the library refuses becomes the line "refused". LIBRARY is
python, jansson or json-c; the latter two are shared libraries. Exits with status 77 if the library
is not installed.
"""

import ctypes
import ctypes.util
import json
import sys


def load(name):
    path = ctypes.util.find_library(name)
    if path is None:
        print(f'lib{name} is not installed', file=sys.stderr)
        sys.exit(77)
    return ctypes.CDLL(path)


def python():
    def round_trip(line):
        try:
            return json.dumps(json.loads(line)).encode()
        except ValueError:
            return b'refused'
    return round_trip


def jansson():
    library = load('jansson')
    library.json_loads.restype = ctypes.c_void_p
    library.json_dumps.restype = ctypes.c_char_p
    library.json_dumps.argtypes = [ctypes.c_void_p, ctypes.c_size_t]

    def round_trip(line):
        value = library.json_loads(line, 0, None)
        return library.json_dumps(value, 0) if value else b'refused'
    return round_trip


def json_c():
    library = load('json-c')
    library.json_tokener_parse.restype = ctypes.c_void_p
    # A double is copied, so that the library writes the value and not the text that it has read.
    library.json_object_object_get.restype = ctypes.c_void_p
    library.json_object_object_get.argtypes = [ctypes.c_void_p, ctypes.c_char_p]
    library.json_object_object_add.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
    library.json_object_get_type.argtypes = [ctypes.c_void_p]
    library.json_object_get_double.restype = ctypes.c_double
    library.json_object_get_double.argtypes = [ctypes.c_void_p]
    library.json_object_new_double.restype = ctypes.c_void_p
    library.json_object_new_double.argtypes = [ctypes.c_double]
    library.json_object_to_json_string.restype = ctypes.c_char_p
    library.json_object_to_json_string.argtypes = [ctypes.c_void_p]
    type_double = 2

    def round_trip(line):
        value = library.json_tokener_parse(line)
        if not value:
            return b'refused'
        member = library.json_object_object_get(value, b'id')
        if library.json_object_get_type(member) == type_double:
            double = library.json_object_get_double(member)
            library.json_object_object_add(value, b'id', library.json_object_new_double(double))
        return library.json_object_to_json_string(value)
    return round_trip


def main():
    libraries = {'python': python, 'jansson': jansson, 'json-c': json_c}
    round_trip = libraries[sys.argv[1]]()
    for line in sys.stdin.buffer:
        sys.stdout.buffer.write(round_trip(line.rstrip(b'\n')) + b'\n')


main()
