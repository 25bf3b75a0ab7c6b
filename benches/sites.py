"""Sites for benches and tests: network namespaces, with lines between them that a relay in user space shapes.

Each site is a network namespace without a name. Its packets to other sites pass a TUN device. The relay delays and
paces them, and drops packets over the limit, as a line does. The kernel's counters of these devices give the traffic
between sites.

Nothing outlives the program: `isolate` puts it into a namespace of processes, which all end with it. Namespaces and
devices are removed with the last process in them.
"""

import ctypes
import fcntl
import heapq
import json
import os
import select
import shutil
import struct
import subprocess
import sys
import time

TUNSETIFF, IFF_TUN, IFF_NO_PI = 0x400454CA, 0x0001, 0x1000
CLONE_NEWNET = 0x40000000
# Queue of a line before it drops packets: seconds at its rate, and bytes at least.
QUEUE_S = 0.1
QUEUE_BYTES_MIN = 32 << 10
# Burst of a line after a pause, in seconds at its rate: the relay may have been late, not the line.
CREDIT_S = 0.02
ISOLATED = "HARVEST_SITES_ISOLATED"
NEEDS = "network namespaces and TUN devices are needed: run this as root"

libc = ctypes.CDLL(None, use_errno=True)


def sh(*command, **options):
    done = subprocess.run(command, capture_output=True, text=True, **options)
    if done.returncode != 0:
        what = " ".join(str(it) for it in command)
        raise RuntimeError(f"{what} ended with {done.returncode}: {done.stdout}{done.stderr}")
    return done.stdout


def isolate():
    """Starts the program again in a namespace of processes, if it is not in one yet: as root, by sudo without a password,
    or else as the present user, if the kernel gives namespaces to all users."""
    if ISOLATED in os.environ:
        return
    for tool, package in (("ip", "iproute2"), ("unshare", "util-linux")):
        if shutil.which(tool) is None:
            sys.exit(f"{tool} is missing: run: apt-get install {package}")
    command = ["unshare", "--net", "--pid", "--fork", "--kill-child", "--mount-proc"]
    if os.geteuid() != 0:
        by_sudo = shutil.which("sudo") and subprocess.run(
            ["sudo", "-n", "true"], capture_output=True
        )
        if by_sudo and by_sudo.returncode == 0:
            command = ["sudo", "-n", "--preserve-env=TMPDIR", *command]
        else:
            command += ["--user", "--map-root-user"]
    if subprocess.run([*command, "true"], capture_output=True).returncode != 0:
        sys.exit(NEEDS)
    command += ["env", f"{ISOLATED}=1", sys.executable, *sys.argv]
    sys.stdout.flush()
    os.execvp(command[0], command)


class Line:
    """One direction between two sites, or all directions out of one site or into it."""

    def __init__(self, mbit, trip_ms):
        self.mbit, self.trip_ms = mbit, trip_ms
        self.rate, self.delay = mbit * 1e6 / 8, trip_ms / 2000
        self.queue = max(QUEUE_S, QUEUE_BYTES_MIN / self.rate)
        self.free, self.up = 0.0, True

    def due(self, now, size):
        """Returns the time at which a packet arrives; None if it is dropped."""
        if not self.up or self.queue < self.free - now:
            return None
        self.free = max(self.free, now - CREDIT_S) + size / self.rate
        return max(self.free, now) + self.delay


def relay(tuns, lines, control):
    """Forwards packets until the control pipe is closed; its commands cut ('down A B') or mend ('up A B') lines."""
    try:
        os.nice(-5)
    except PermissionError:
        # Root in a user namespace may lack this permission.
        pass
    by_fd, queue, count = {fd: site for site, fd in tuns.items()}, [], 0
    while True:
        now = time.monotonic()
        while queue and queue[0][0] <= now:
            _, _, to, packet = heapq.heappop(queue)
            try:
                os.write(tuns[to], packet)
            except OSError:
                pass
        wait = max(0.0, queue[0][0] - time.monotonic()) if queue else 1.0
        ready, _, _ = select.select([*by_fd, control], [], [], wait)
        for fd in ready:
            if fd == control:
                command = os.read(control, 4096).decode()
                if not command:
                    return
                for line in command.split("\n"):
                    if line:
                        what, a, b = line.split()
                        for way in ((a, b), (b, a)):
                            lines[way].up = what == "up"
                continue
            for _ in range(32):
                try:
                    packet = os.read(fd, 65536)
                except BlockingIOError:
                    break
                to = f"s{packet[18]}" if packet[0] >> 4 == 4 else None
                line = lines.get((by_fd[fd], to))
                due = line and line.due(time.monotonic(), len(packet))
                if due:
                    count += 1
                    heapq.heappush(queue, (due, count, to, packet))


class Sites:
    """Sites `s1`, `s2`, … with lines between them: (a, b) → (Mbit/s, round trip in ms). A line from a site to None
    carries all traffic into it or out of it."""

    def __init__(self, count, lines):
        self.names = [f"s{it}" for it in range(1, count + 1)]
        self.ways = {}
        for (a, b), shape in lines.items():
            out, back = Line(*shape), Line(*shape)
            for other in self.names if b is None else (b,):
                if other != a:
                    self.ways[(a, other)], self.ways[(other, a)] = out, back
        home, tuns, self.spaces = os.open("/proc/self/ns/net", os.O_RDONLY), {}, {}
        for number, site in enumerate(self.names, 1):
            check(libc.unshare(CLONE_NEWNET))
            self.spaces[site] = os.open("/proc/self/ns/net", os.O_RDONLY)
            try:
                fd = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
                fcntl.ioctl(fd, TUNSETIFF, struct.pack("16sH22x", b"wan", IFF_TUN | IFF_NO_PI))
            except OSError as error:
                sys.exit(f"{NEEDS} (/dev/net/tun: {error.strerror})")
            tuns[site] = fd
            check(libc.setns(home, CLONE_NEWNET))
            for command in (
                "link set lo up",
                "link set wan up",
                f"addr add 10.9.{number}.1/32 dev wan",
                "route add 10.9.0.0/16 dev wan",
            ):
                self.run(site, "ip", *command.split())
        os.close(home)
        reads, self.control = os.pipe()
        self.relay = os.fork()
        if self.relay == 0:
            os.close(self.control)
            try:
                relay(tuns, self.ways, reads)
            finally:
                os._exit(0)
        os.close(reads)
        for fd in tuns.values():
            os.close(fd)

    def inside(self, site):
        """Returns the function with which a new process enters a site."""
        fd = self.spaces[site]
        return lambda: check(libc.setns(fd, CLONE_NEWNET))

    def run(self, site, *command):
        return sh(*command, preexec_fn=self.inside(site))

    def start(self, site, log, *command):
        with open(log, "ab") as out:
            return subprocess.Popen(command, stdout=out, stderr=out, preexec_fn=self.inside(site))

    def cut(self, a, b):
        os.write(self.control, f"down {a} {b}\n".encode())

    def mend(self, a, b):
        os.write(self.control, f"up {a} {b}\n".encode())

    def bytes_into(self, site):
        """Returns the bytes that a site has received from others."""
        found = json.loads(self.run(site, "ip", "-s", "-j", "link", "show", "wan"))
        # The relay writes incoming packets to the device.
        return found[0]["stats64"]["rx"]["bytes"]

    def bytes_between(self):
        return sum(self.bytes_into(it) for it in self.names)

    def close(self):
        os.close(self.control)
        os.waitpid(self.relay, 0)
        for fd in self.spaces.values():
            os.close(fd)


def check(result):
    if result != 0:
        raise OSError(ctypes.get_errno(), NEEDS)
