"""The little of TAP that the static checks print."""

import sys


class Tap:
    def __init__(self):
        self.count = self.failed = 0

    def ok(self, passed, name, *why):
        """One case; the lines of WHY are shown when it failed."""
        self.count += 1
        self.failed += not passed
        print(f"{'ok' if passed else 'not ok'} {self.count} - {name}")
        if not passed:
            for line in why:
                print(f"# {line}")

    def skip(self, name, why):
        self.count += 1
        print(f"ok {self.count} - {name} # SKIP {why}")

    def done(self):
        print(f"1..{self.count}")
        sys.exit(1 if self.failed else 0)


def skip_all(why):
    print(f"1..0 # SKIP {why}")
    sys.exit(0)
