#!/usr/bin/env python3
"""Runs keel as ranks on two hosts that a slow and lossy line joins, on one machine.

usage: tests/ranks/slow_link.py KEEL [--delay MS] [--loss PERCENT] ARGUMENT ...

The hosts are two network namespaces, and the line is this program: it carries the packets from the
device (TUN) of one to that of the other, each after the delay, and loses some. It needs root and
/dev/net/tun, and no netem of the kernel. Open MPI starts the second rank by an agent that enters
its namespace where it would use ssh. Ends with the exit code of mpirun."""
import argparse
import collections
import ctypes
import fcntl
import os
import pathlib
import random
import select
import stat
import struct
import subprocess
import sys
import tempfile
import time

HOSTS = {"keel-a": "10.77.0.1", "keel-b": "10.77.0.2"}
DEVICE = "keel0"
TUNSETIFF, IFF_TUN, IFF_NO_PI = 0x400454CA, 0x0001, 0x1000
AGENT = """#!/bin/sh
# Called as ssh is: HOST COMMAND
shift
exec ip netns exec keel-b sh -c "$*"
"""


def enter(path):
    with open(path, encoding="utf-8") as namespace:
        if ctypes.CDLL(None, use_errno=True).setns(namespace.fileno(), 0) != 0:
            raise OSError(ctypes.get_errno(), f"cannot enter {path}")


def run(*words):
    subprocess.run(words, check=True)


def make_host(name, address):
    """A namespace with a device; returns the device's other end."""
    run("ip", "netns", "add", name)
    enter(f"/var/run/netns/{name}")
    device = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
    fcntl.ioctl(device, TUNSETIFF, struct.pack("16sH22x", DEVICE.encode(), IFF_TUN | IFF_NO_PI))
    run("ip", "address", "add", f"{address}/24", "dev", DEVICE)
    for link in ("lo", DEVICE):
        run("ip", "link", "set", link, "up")
    return device


class Line:
    """Carries packets between two devices."""

    def __init__(self, devices, delay, loss):
        self.other = {devices[0]: devices[1], devices[1]: devices[0]}
        self.delay, self.loss = delay, loss
        self.waiting = collections.deque()  # (due, device, packet), in the order of due
        self.carried = self.lost = 0

    def step(self):
        wait = max(0, self.waiting[0][0] - time.monotonic()) if self.waiting else 0.1
        for device in select.select(list(self.other), [], [], wait)[0]:
            packet = os.read(device, 65536)
            if random.random() < self.loss:
                self.lost += 1
                continue
            self.waiting.append((time.monotonic() + self.delay, self.other[device], packet))
        while self.waiting and self.waiting[0][0] <= time.monotonic():
            _, device, packet = self.waiting.popleft()
            os.write(device, packet)
            self.carried += 1


def start_ranks(keel, arguments, agent):
    only = ["--mca", "btl", "tcp,self", "--mca", "btl_tcp_if_include", DEVICE,
            "--mca", "oob_tcp_if_include", DEVICE, "--mca", "plm_rsh_agent", agent]
    return subprocess.Popen(["ip", "netns", "exec", "keel-a", "mpirun", "--allow-run-as-root",
                             "--host", ",".join(HOSTS.values()), "-n", "2", "--bind-to", "none",
                             *only, keel, *arguments])


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("keel")
    parser.add_argument("--delay", type=float, default=1, help="ms in each direction")
    parser.add_argument("--loss", type=float, default=0.1, help="per cent of the packets")
    args, arguments = parser.parse_known_args()
    home = "/proc/self/ns/net"
    with open(home, encoding="utf-8") as own, tempfile.TemporaryDirectory() as temp:
        agent = pathlib.Path(temp, "agent")
        agent.write_text(AGENT, encoding="utf-8")
        agent.chmod(agent.stat().st_mode | stat.S_IXUSR)
        process = None
        try:
            devices = [make_host(*host) for host in HOSTS.items()]
            ctypes.CDLL(None).setns(own.fileno(), 0)
            line = Line(devices, args.delay / 1000, args.loss / 100)
            process = start_ranks(os.path.abspath(args.keel), arguments, str(agent))
            while process.poll() is None:
                line.step()
            print(f"{line.carried} packets carried, {line.lost} lost", file=sys.stderr)
            return process.returncode
        finally:
            if process is not None and process.poll() is None:
                process.terminate()
                try:
                    process.wait(timeout=10)
                except subprocess.TimeoutExpired:
                    process.kill()
            for name in HOSTS:
                subprocess.run(["ip", "netns", "delete", name], check=False)


if __name__ == "__main__":
    sys.exit(main())
