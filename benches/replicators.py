"""Replicators at sites, for benches and tests: processes of the binary, and their published trees."""

import hashlib
import itertools
import json
import os
import random
import shutil
import signal
import sys
import tempfile
import time

from sites import Sites, sh

PATIENCE_S = 600
# Time after the measurement of all links at which estimates are final: a probed line is probed again after three
# minutes.
SETTLED_S = 300
# Number of lines of each log that are printed after a failure.
LOG_LINES = 5


class Member:
    """A replicator that runs in a site."""

    def __init__(self, world, site, number):
        self.world, self.site, self.name = world, site, f"m{number} in {site}"
        self.port = 4000 + number
        self.dir = os.path.join(world.dir, f"m{number}")
        self.address = f"10.9.{site[1:]}.1:{self.port}"
        self.process = None

    def make(self, *arguments):
        place = ["--address", self.address, "--site", self.site]
        return sh(self.world.binary, "replicator", *arguments, *place)

    def command(self, *arguments):
        settings = os.path.join(self.dir, "replicator.toml")
        what, *rest = arguments
        return self.world.sites.run(
            self.site, self.world.binary, "replicator", what, "-c", settings, *rest
        )

    def start(self):
        settings = os.path.join(self.dir, "replicator.toml")
        log = self.dir + ".log"
        command = [self.world.binary, *self.world.log, "replicator", "run", "-c", settings]
        self.process = self.world.sites.start(self.site, log, *command)

    def add(self, settings):
        with open(os.path.join(self.dir, "replicator.toml"), "a") as file:
            file.write(settings)

    def stop(self, how=signal.SIGTERM):
        if self.process:
            self.process.send_signal(how)
            self.process.wait()
            self.process = None

    def print_log(self):
        """Prints the end of the log."""
        if os.path.exists(self.dir + ".log"):
            with open(self.dir + ".log") as file:
                lines = file.readlines()[-LOG_LINES:]
            print(f"{self.name}:", *lines, sep="\n  ", file=sys.stderr)

    def invitation(self, group):
        """Returns an invitation, as soon as the member runs."""
        until = time.monotonic() + PATIENCE_S
        while True:
            try:
                return self.command("invite", "--group", group).split()[-1]
            except RuntimeError:
                if self.process.poll() is not None or until < time.monotonic():
                    raise
                time.sleep(0.1)

    def status(self):
        return json.loads(self.command("status", "--json"))

    def cpu(self):
        with open(f"/proc/{self.process.pid}/stat") as file:
            fields = file.read().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def current(self, tree):
        """Returns the generation that readers of this member see."""
        try:
            return os.path.basename(os.path.dirname(os.readlink(os.path.join(tree, "current"))))
        except OSError:
            return None


class World:
    """A group: the first member founds it, and the member number `writer` publishes `t`; `places` has the site of each
    member. Or several groups: `groups` has the member numbers of each. The first member that a group shares with the
    previous one founds it; all shared members carry trees across."""

    def __init__(self, options, places, lines, groups=None, writer=0):
        self.binary, self.keep = os.path.abspath(options.binary), options.keep
        self.log = os.environ.get("HARVEST_BENCH_LOG", "").split()
        self.dir = tempfile.mkdtemp(prefix="harvest-replication-")
        self.source = os.path.join(self.dir, "source")
        os.mkdir(self.source)
        print(f"{len(places)} members in {len(set(places))} sites:", flush=True)
        self.sites = Sites(len(set(places)), lines)
        self.members = [Member(self, site, number) for number, site in enumerate(places)]
        self.groups = [[self.members[it] for it in group] for group in groups or [range(len(places))]]
        self.writer, self.id = self.members[writer], None

    def __enter__(self):
        try:
            self.found()
        except BaseException:
            self.__exit__(*sys.exc_info())
            raise
        return self

    def __exit__(self, failed, *_):
        for member in self.members:
            if member.process:
                member.process.send_signal(signal.SIGTERM)
        for member in self.members:
            member.stop()
            if failed and not self.keep:
                member.print_log()
        self.sites.close()
        if self.keep:
            print(f"logs are in {self.dir}")
        else:
            shutil.rmtree(self.dir)

    def found(self):
        """Founds the groups; all members join and run."""
        for number, group in enumerate(self.groups):
            founder = None
            for member in group:
                # An invitation is for one member.
                invitation = founder and founder.invitation(f"g{number}")
                if member.process is None:
                    tree = ["--tree", f"t={self.source}"] if member is self.writer else []
                    if invitation:
                        member.make("join", member.dir, invitation, *tree)
                    else:
                        member.make("init", member.dir, "--group", f"g{number}", *tree)
                else:
                    how = f'join = "{invitation}"' if invitation else f'name = "g{number}"'
                    member.add(f'\n[[group]]\n{how}\ncarry = ["g{number - 1}"]\n')
                    member.stop()
                member.start()
                founder = founder or member

    def tree(self, member):
        self.id = self.id or self.writer.status()["id"]
        return os.path.join(member.dir, "data", "trees", f"t@{self.id}")

    def joined(self):
        """Waits until all are members of all their groups."""
        until = time.monotonic() + PATIENCE_S
        for member in self.members:
            count = sum(member in it for it in self.groups)
            while True:
                try:
                    if sum(it["is_member"] for it in member.status()["groups"]) == count:
                        break
                except RuntimeError:
                    pass
                if until < time.monotonic():
                    raise TimeoutError(f"{member.dir} is no member; see its log")
                time.sleep(0.1)

    def ready(self):
        """Waits until all are members, and all links of the topology are measured and up."""
        until = time.monotonic() + PATIENCE_S
        while True:
            try:
                group = self.members[0].status()["groups"][0]
                links = group["topology"]
                known = [it for it in links if it["bandwidth"] and it["round_trip_ms"]]
                if len(group["members"]) == len(self.members) and len(known) == len(links):
                    time.sleep(SETTLED_S)
                    group = self.members[0].status()["groups"][0]
                    for it in group["topology"]:
                        kind = "tree" if it["is_tree"] else "beside"
                        trip, rate = it["round_trip_ms"], it["bandwidth"] * 8e-6
                        print(f"  {it['a'][:4]} {it['b'][:4]} {kind}: {trip:.1f} ms, {rate:.1f} Mbit/s")
                    return group
            except (RuntimeError, IndexError):
                pass
            if until < time.monotonic():
                raise TimeoutError("the group was not formed; see the logs")
            time.sleep(2)

    def estimates(self):
        """Returns the estimates of links between sites: (from, to) → (Mbit/s, ms, the line); None for unknown values."""
        found = {}
        for number, group in enumerate(self.groups):
            member = next(it for it in group if it.process)
            drawn = json.loads(member.command("topology", "--json", "--group", f"g{number}"))
            sites = {it["id"]: it["site"] for it in drawn["members"]}
            assert len(sites) == len(group), f"{len(sites)} of {len(group)} members of g{number}"
            links = {frozenset((it["a"], it["b"])): it for it in drawn["topology"] + drawn["measured"]}
            for a, b in itertools.combinations(sorted(sites), 2):
                if sites[a] != sites[b]:
                    link = links.get(frozenset((a, b)), {"bandwidth": None, "round_trip_ms": None})
                    rate = link["bandwidth"] and link["bandwidth"] * 8e-6
                    line = self.sites.ways[(sites[a], sites[b])]
                    found[(a[:4], b[:4])] = (rate, link["round_trip_ms"], line)
        return found

    def off(self):
        """Returns the estimates of links between sites that are not within 25 % of the lines."""
        return {
            ends: f"{rate or 0:.3f} of {line.mbit} Mbit/s, {trip or 0:.1f} of {line.trip_ms} ms"
            for ends, (rate, trip, line) in self.estimates().items()
            if not (is_near(rate, line.mbit) and is_near(trip, line.trip_ms))
        }

    def near(self, patience_s):
        """Waits until all estimates of lines between sites are within 25 %, at most `patience_s`; returns the time that
        this took, and the estimates that are still off."""
        began = time.monotonic()
        while off := self.off():
            if began + patience_s < time.monotonic():
                break
            if os.environ.get("HARVEST_BENCH_WATCH"):
                print(f"  {time.monotonic() - began:.0f} s: {off}", flush=True)
            time.sleep(2)
        return time.monotonic() - began, off

    def publish(self, members=None, patience_s=PATIENCE_S):
        """Publishes, and waits until all members have the version; returns times, traffic and CPU time."""
        members = members or self.members
        before = {it: it.current(self.tree(it)) for it in members}
        bytes_before, cpu_before = self.sites.bytes_between(), [it.cpu() for it in members]
        began = time.monotonic()
        version = json.loads(self.writer.command("publish", "--json"))
        announced = time.monotonic()
        there, open_ones = {}, set(members)
        while open_ones:
            for it in list(open_ones):
                now = it.current(self.tree(it))
                if now not in (None, before[it]) and now.split("-", 1)[1] == version["version"]:
                    there[it] = time.monotonic() - announced
                    open_ones.discard(it)
            if began + patience_s < time.monotonic():
                raise TimeoutError(f"{len(open_ones)} members lack {version['version']}")
            time.sleep(0.005)
        return {
            "published_s": announced - began,
            "all_s": max(there.values()),
            "each_s": {it.name: round(there[it], 2) for it in members},
            "between": self.sites.bytes_between() - bytes_before,
            "cpu_s": sum(it.cpu() - was for it, was in zip(members, cpu_before)),
        }

    def equal(self):
        """Checks that all running members have the published bytes."""
        expected = digest(self.source)
        for member in self.members:
            if member.process and digest(os.path.join(self.tree(member), "current")) != expected:
                raise AssertionError(f"{member.name} has other bytes than the published ones")


def is_near(found, expected):
    return found is not None and abs(found - expected) <= expected / 4


def fill(directory, megabytes, seed=1):
    """Writes incompressible files of all sizes."""
    dice = random.Random(seed)
    left, number = int(megabytes * 1e6), 0
    while left > 0:
        size = min(left, int(10 ** dice.uniform(3, 7)))
        folder = os.path.join(directory, f"d{number % 17}")
        os.makedirs(folder, exist_ok=True)
        with open(os.path.join(folder, f"f{number}"), "wb") as file:
            file.write(dice.randbytes(size))
        left, number = left - size, number + 1


def change(directory, share, seed=2):
    """Changes a share of the bytes, in one place: the middle of the largest file, and inserts 1,000 bytes there."""
    dice, files = random.Random(seed), []
    for folder, _, names in os.walk(directory):
        files += [os.path.join(folder, it) for it in names]
    largest = max(files, key=os.path.getsize)
    size = int(sum(os.path.getsize(it) for it in files) * share)
    with open(largest, "rb") as file:
        content = file.read()
    half = min(len(content) // 2, len(content) - size)
    with open(largest, "wb") as file:
        file.write(content[:half] + dice.randbytes(size + 1000) + content[half + size:])


def append(directory, count, seed):
    """Appends `count` bytes to files of 4 MB, as to the segments of a collection, and replaces a list of these files."""
    dice, number = random.Random(seed), 0
    while 0 < count:
        path = os.path.join(directory, f"{number:08}.segment")
        room = 4_000_000 - (os.path.getsize(path) if os.path.exists(path) else 0)
        if 0 < room:
            with open(path, "ab") as file:
                file.write(dice.randbytes(min(room, count)))
            count -= min(room, count)
        number += 1
    path = os.path.join(directory, "segments")
    with open(path + ".new", "w") as file:
        file.write(f"serial {seed}\n" + "".join(f"{it:08}.segment\n" for it in range(number)))
    os.replace(path + ".new", path)


def digest(directory):
    """Returns a hash of all names and all bytes below a directory."""
    total = hashlib.sha256()
    for folder, folders, names in os.walk(directory):
        folders.sort()
        for name in sorted(names):
            path = os.path.join(folder, name)
            with open(path, "rb") as file:
                of = hashlib.file_digest(file, "sha256").hexdigest()
            total.update(f"{os.path.relpath(path, directory)} {of}\n".encode())
    return total.hexdigest()
