#!/usr/bin/env python3
"""run.py [--bus PROGRAM] [TEXT...]: attempts to break what doc/security.md promises, as somebody
would make them who has read README.md, doc/protocol.md and doc/security.md alone. Prints a table of
attempts and outcomes; fails if one did what it must not. With a TEXT only attempts whose kind or
name has it. TEST_TIMEOUT_FACTOR=N: deadlines and bounds are N times as long."""
import argparse
import sys
import time

import framing
import identity
import terminal
import times
import web
import world
from attempt import Limit


def run(place, attempt):
    began = time.monotonic()
    try:
        outcome = "held: " + (attempt.run(place) or "nothing of it got through")
        place.settle()
        good = True
        if isinstance(attempt, Limit):
            outcome, good = "HELD: doc/security.md says that there is no defence", False
    except world.Broken as error:
        outcome, good = "DID NOT HOLD: %s" % error, False
        if isinstance(attempt, Limit):
            outcome, good = "no defence, as doc/security.md says: %s" % error, True
    except (OSError, ValueError, KeyError, TypeError) as error:
        outcome, good = "DID NOT HOLD: %s: %s" % (type(error).__name__, error), False
    print("| %s | %s | %s | %.1f s |" % (attempt.kind, attempt.name, outcome.replace("|", "/"),
                                          time.monotonic() - began), flush=True)
    return good


def main():
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--bus", default="./stdio_bus")
    options.add_argument("words", nargs="*")
    given = options.parse_args()
    attempts = [attempt for module in (framing, web, identity, terminal, times)
                for attempt in module.attempts()
                if not given.words or any(word in attempt.kind + " " + attempt.name
                                          for word in given.words)]
    place = world.World(given.bus)
    failed = 0
    print("| kind | attempt | outcome | time |\n|---|---|---|---|")
    try:
        for attempt in attempts:
            if not run(place, attempt):
                failed += 1
            if place.process.poll() is not None:
                place = world.World(given.bus)
    finally:
        place.end()
    print("\n%d attempts, %d did not hold" % (len(attempts), failed))
    return 1 if failed or not attempts else 0


if __name__ == "__main__":
    sys.exit(main())
