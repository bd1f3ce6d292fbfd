"""An attempt: its kind, its name, and the function that makes it."""
import itertools

_numbers = itertools.count(1)


class Attempt:
    def __init__(self, kind, name, function, *rest):
        self.kind, self.name, self.function, self.rest = kind, name, function, rest

    def run(self, world):
        """Returns what was seen, or None. Raises Broken."""
        return self.function(world, *self.rest)


class Limit(Attempt):
    """One against which there is no defence, as doc/security.md says: it succeeds."""


def mark():
    """A text that no other attempt has."""
    return "mark-%d" % next(_numbers)
