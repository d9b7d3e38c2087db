#!/usr/bin/env python3
"""Counts what the rules of examples/wordpress.yaml do to an access log.

It is written from the definitions in docs/windows.md and shares nothing with
weir, so that `weir replay --json` can be held to it:

    scripts/exact.py access.log.gz

Each key keeps every hit that is still inside its window. It needs nothing but
Python 3.9. To try other limits: --limit requests-per-minute=30
"""

import argparse
import collections
import datetime
import functools
import gzip
import json
import math
import re
import zoneinfo

LINE = re.compile(
    r'(?P<ip>\S+) \S+ \S+ \[(?P<time>[^\]]+)\] "(?P<request>(?:[^"\\]|\\.)*)" '
    r'(?P<status>\d{3}) (?P<bytes>\d+|-) "(?:[^"\\]|\\.)*" "(?:[^"\\]|\\.)*"'
)
PRECISION = 100  # up to this quota every hit stands alone
TOP = 10


class Sliding:
    """Hits at t with now - length < t <= now, in groups of g = ceil(quota / 100).

    Only the newest group may be partly filled; a hit that joins it gives it its
    own date. A group leaves when its date does. With g = 1 this is exact.
    """

    def __init__(self, length):
        self.length = length
        self.groups = collections.deque()  # [date, hits]
        self.last = -math.inf  # instants of one key never go back

    def fits(self, now, quota, hits, member):
        now = max(now, self.last)
        while self.groups and self.groups[0][0] <= now - self.length:
            self.groups.popleft()
        return sum(group[1] for group in self.groups) + hits <= quota

    def count(self, now, quota, hits, member):
        assert hits == 1
        self.last = max(now, self.last)
        size = math.ceil(quota / PRECISION)
        if self.groups and self.groups[-1][1] < size:
            self.groups[-1][0] = self.last
            self.groups[-1][1] += 1
        else:
            self.groups.append([self.last, 1])


class Distinct:
    """Members used at t with now - length < t <= now. One that is inside is free."""

    def __init__(self, length):
        self.length = length
        self.used = {}  # member: when last
        self.last = -math.inf

    def fits(self, now, quota, hits, member):
        edge = max(now, self.last) - self.length
        self.used = {m: t for m, t in self.used.items() if t > edge}
        return member in self.used or len(self.used) < quota

    def count(self, now, quota, hits, member):
        self.last = max(now, self.last)
        self.used[member] = self.last


class Day:
    """Hits of one date on the wall of a time zone. No hits always fit."""

    def __init__(self, zone):
        self.zone = zoneinfo.ZoneInfo(zone)
        self.date = datetime.date.min
        self.hits = 0

    def today(self, now):
        return max(self.date, datetime.datetime.fromtimestamp(now, self.zone).date())

    def fits(self, now, quota, hits, member):
        used = self.hits if self.today(now) == self.date else 0
        return hits == 0 or used + hits <= quota

    def count(self, now, quota, hits, member):
        if hits > 0:
            today = self.today(now)
            self.hits = hits + (self.hits if today == self.date else 0)
            self.date = today


class Rule:
    def __init__(self, name, quota, window, matches=lambda r: True, hits=None, member=None):
        self.name, self.quota, self.window, self.matches = name, quota, window, matches
        self.hits = hits or (lambda r: 1)
        self.member = member or (lambda r: None)
        self.keys = collections.defaultdict(window)
        self.matched = self.denied = self.decided = 0
        self.denied_keys = collections.Counter()

    def report(self):
        top = sorted(self.denied_keys.items(), key=lambda kv: (-kv[1], kv[0]))[:TOP]
        return {
            "name": self.name,
            "matched": self.matched,
            "allowed": self.matched - self.denied,
            "denied": self.denied,
            "decided": self.decided,
            "keys": len(self.keys),
            "top_denied": [{"key": key, "denied": denied} for key, denied in top],
        }


def wordpress():
    """The rules of examples/wordpress.yaml, all of them per address."""

    def login(r):
        return r["method"] == "POST" and r["path"] == "/wp-login.php"

    return [
        Rule("logins-per-minute", 5, lambda: Sliding(60), login),
        Rule("logins-per-hour", 20, lambda: Sliding(3600), login),
        Rule("requests-per-minute", 300, lambda: Sliding(60)),
        Rule("paths-per-hour", 100, lambda: Distinct(3600), lambda r: r["path"], member=lambda r: r["path"]),
        Rule("bytes-per-day", 500_000_000, lambda: Day("America/New_York"), hits=lambda r: r["bytes"]),
    ]


def parse(line):
    match = LINE.match(line)
    if not match:
        return None
    words = match["request"].split(" ")
    return {
        "ip": match["ip"],
        "time": instant(match["time"]),
        "method": words[0] if len(words) > 1 else "",
        "path": words[1].partition("?")[0] if len(words) > 1 else "",
        "bytes": 0 if match["bytes"] == "-" else int(match["bytes"]),
    }


@functools.lru_cache(maxsize=1)
def instant(text):
    return datetime.datetime.strptime(text, "%d/%b/%Y:%H:%M:%S %z").timestamp()


def take(rules, request):
    """All or nothing: it counts in every rule that matches, or in none."""
    now, key = request["time"], request["ip"]
    asked = []
    for rule in rules:
        if rule.matches(request):
            rule.matched += 1
            asked.append((rule, rule.keys[key], (now, rule.quota, rule.hits(request), rule.member(request))))
    over = [rule for rule, state, args in asked if not state.fits(*args)]
    for rule in over:
        rule.denied += 1
        rule.denied_keys[key] += 1
    if over:
        over[0].decided += 1
        return
    for _, state, args in asked:
        state.count(*args)


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("log", help="an access log in the combined format, .gz or not")
    options.add_argument("--limit", action="append", default=[], metavar="RULE=N", help="give a rule another limit")
    options = options.parse_args()

    rules = wordpress()
    for name, _, quota in (limit.partition("=") for limit in options.limit):
        next(rule for rule in rules if rule.name == name).quota = int(quota)

    lines = bad = 0
    reader = gzip.open if options.log.endswith(".gz") else open
    with reader(options.log, "rt", encoding="utf-8", errors="surrogateescape", newline="\n") as log:
        for line in log:
            lines += 1
            request = parse(line)
            if request:
                take(rules, request)
            else:
                bad += 1
    print(json.dumps({"lines": lines, "bad": bad, "rules": [rule.report() for rule in rules]}))


if __name__ == "__main__":
    main()
