"""A cluster on one machine: network namespaces as hosts, joined by links of a chosen rate.

    python bench/cluster.py run --hosts 4 --rate 1gbit -n 4 -- ./program          # MPICH, over TCP
    python bench/cluster.py run --hosts 4 --rate 1gbit --codec auto -- ./program  # under mpress run
    python bench/cluster.py collectives --json bench/results/cluster-four-hosts.json
    python bench/cluster.py collectives --memory D --rate 10gbit --spec szp:rel=1e-3  # GPUs
    python bench/cluster.py clean

Each host is a namespace with one interface, joined by a veth pair to a bridge in a namespace of its
own, so clusters meet nobody's names or addresses. A token bucket holds each host's rate, out and
in; --latency delays what goes out, where the kernel has netem. Set up by netlink (pyroute2, of the
extra `bench`); needs root. What a killed driver left is removed by the next one, and by `clean`.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shlex
import signal
import stat
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from mpress import _core
from mpress.codec_bench import git_commit

BIN = Path(sys.executable).parent
NETWORK = "10.77.0"
MOST_HOSTS = 200
MTU = 9000  # jumbo frames: packets cost the machine's cores what they cost no host
AGENT = "mpress-cluster-"  # what launchers start on a host, a file: with its owner's number
OPS = ("bcast", "allgather", "alltoall", "allreduce")
SPECS = ("szp:rel=1e-4", "auto")
_NAME = re.compile(r"mpress-(\d+)-(?:switch|\d+)")
_UNITS = {"bit": 1, "kbit": 1e3, "mbit": 1e6, "gbit": 1e9}
_SECONDS = {"us": 1e-6, "ms": 1e-3, "s": 1}


class ClusterError(Exception):
    """It cannot be set up, or a program on it failed."""


@dataclass(frozen=True)
class Plan:
    """What a cluster is made of; `owner` is the process that removes it."""

    hosts: int
    rate: int  # bits a second
    latency: float = 0  # seconds, each way
    at_once: int = 0  # bytes that go faster than that; 0: see `burst`
    owner: int = field(default_factory=os.getpid)

    @property
    def switch(self) -> str:
        return f"mpress-{self.owner}-switch"

    def namespace(self, host: int) -> str:
        return f"mpress-{self.owner}-{host}"

    def address(self, host: int) -> str:
        return f"{NETWORK}.{host + 1}"

    @property
    def namespaces(self) -> list[str]:
        return [self.switch, *(self.namespace(host) for host in range(self.hosts))]

    @property
    def burst(self) -> int:
        """Bytes that go at once: by default a millisecond's, and no less than TCP gives an
        interface in one piece, which would else be cut, at the cost of the machine's cores."""
        return self.at_once or max(int(self.rate / 8 * 1e-3), 64 << 10)


def parse_rate(text: str) -> int:
    """Bits a second of `1gbit`, `100mbit`."""
    found = re.fullmatch(r"(\d+(?:\.\d+)?)([kmg]?bit)", text.lower())
    if not found or float(found[1]) <= 0:
        raise ClusterError(f"--rate {text!r}: expected a rate such as 1gbit or 100mbit")
    return int(float(found[1]) * _UNITS[found[2]])


def parse_latency(text: str) -> float:
    """Seconds of `50us`, `1ms`."""
    found = re.fullmatch(r"(\d+(?:\.\d+)?)(us|ms|s)", text.lower())
    if not found:
        raise ClusterError(f"--latency {text!r}: expected a time such as 50us or 1ms")
    return float(found[1]) * _SECONDS[found[2]]


def checked_plan(hosts: int, rate: str, latency: str | None) -> Plan:
    if not 2 <= hosts <= MOST_HOSTS:
        raise ClusterError(f"--hosts {hosts}: expected 2 to {MOST_HOSTS}")
    return Plan(hosts, parse_rate(rate), parse_latency(latency) if latency else 0)


def netlink() -> Any:
    if os.geteuid() != 0:
        raise ClusterError("network namespaces take root: run it as root, or with sudo")
    try:
        import pyroute2
    except ImportError:
        raise ClusterError("pyroute2 is not installed: pip install 'mpress[bench]'") from None
    return pyroute2


class Cluster:
    """Set up while it is entered."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self._launcher: Path | None = None

    def __enter__(self) -> Cluster:
        pyroute2 = netlink()
        clean()
        try:
            self._set_up(pyroute2)
        except BaseException as error:
            self._remove()
            if isinstance(error, pyroute2.NetlinkError):
                raise ClusterError(f"the system refuses the cluster: {error}") from None
            raise
        return self

    def set_rate(self, rate: str) -> None:
        """Of all links, out and in, from now on."""
        pyroute2 = netlink()
        changed = replace(self.plan, rate=parse_rate(rate))
        for name, prefix in ((name, "eth") for name in changed.namespaces[1:]):
            self._change_rate(pyroute2, name, prefix, changed)
        self._change_rate(pyroute2, changed.switch, "port", changed)
        self.plan = changed

    @staticmethod
    def _change_rate(pyroute2: Any, namespace: str, prefix: str, plan: Plan) -> None:
        with pyroute2.NetNS(namespace) as where:
            for link in where.get_links():
                if str(link.get_attr("IFLA_IFNAME")).startswith(prefix):
                    where.tc("change", "tbf", index=link["index"], handle="1:",
                             rate=f"{plan.rate}bit", burst=plan.burst,
                             latency="200ms")  # fmt: skip

    def __exit__(self, *_: object) -> None:
        self._remove()

    def _set_up(self, pyroute2: Any) -> None:
        plan = self.plan
        for name in plan.namespaces:
            pyroute2.netns.create(name)
        with pyroute2.NetNS(plan.switch) as switch:
            switch.link("add", ifname="bridge", kind="bridge")
            bridge = switch.link_lookup(ifname="bridge")[0]
            switch.link("set", index=bridge, state="up")
            for host in range(plan.hosts):
                port = f"port{host}"
                end = f"end{host}"
                switch.link("add", ifname=port, kind="veth", peer=end)
                switch.link("set", index=switch.link_lookup(ifname=end)[0],
                            net_ns_fd=plan.namespace(host))  # fmt: skip
                index = switch.link_lookup(ifname=port)[0]
                switch.link("set", index=index, master=bridge, state="up", mtu=MTU)
                self._shape(pyroute2, switch, index, False)
                self._set_up_host(pyroute2, host)

    def _set_up_host(self, pyroute2: Any, host: int) -> None:
        with pyroute2.NetNS(self.plan.namespace(host)) as inside:
            index = inside.link_lookup(ifname=f"end{host}")[0]
            inside.link("set", index=index, ifname="eth0", mtu=MTU)
            for one in (inside.link_lookup(ifname="lo")[0], index):
                inside.link("set", index=one, state="up")
            inside.addr("add", index=index, address=self.plan.address(host), prefixlen=24)
            self._shape(pyroute2, inside, index, True)

    def _shape(self, pyroute2: Any, where: Any, index: int, delays: bool) -> None:
        """The rate of what leaves an interface; `delays`: its latency, too."""
        plan = self.plan
        where.tc("add", "tbf", index=index, handle="1:", rate=f"{plan.rate}bit",
                 burst=plan.burst, latency="200ms")  # fmt: skip
        if not (delays and plan.latency):
            return
        try:
            where.tc("add", "netem", index=index, handle="2:", parent="1:1",
                     delay=int(plan.latency * 1e6))  # fmt: skip
        except pyroute2.NetlinkError:
            raise ClusterError(
                "--latency: this kernel has no netem, which would delay packets; leave it out"
            ) from None

    def _remove(self) -> None:
        remove(self.plan.namespaces)
        self._remove_agent()

    def mpiexec(self, ranks: int, mpiexec: Path = BIN / "mpiexec") -> list[str]:
        """MPICH's launcher in the first host, for so many ranks: they come host by host, in blocks,
        and talk TCP."""
        return [*self._inside(), str(mpiexec), "-launcher", "ssh", "-launcher-exec", self._agent(),
                "-hosts", self._hosts(ranks), "-localhost", self.plan.address(0)]  # fmt: skip

    def mpirun(self, ranks: int, mpirun: str = "mpirun") -> list[str]:
        """Open MPI's, the same. Ranks that wait leave the machine's cores to other hosts'."""
        settings = {"plm_rsh_agent": self._agent(), "pml": "ob1", "btl": "self,vader,tcp",
                    "btl_tcp_if_include": "eth0", "oob_tcp_if_include": "eth0",
                    "mpi_yield_when_idle": "1"}  # fmt: skip
        words = [word for name, value in settings.items() for word in ("--mca", name, value)]
        return [*self._inside(), mpirun, "--host", self._hosts(ranks), *words]

    def _inside(self) -> list[str]:
        return ["ip", "netns", "exec", self.plan.namespace(0)]

    def _hosts(self, ranks: int) -> str:
        each = -(-ranks // self.plan.hosts)
        return ",".join(f"{self.plan.address(host)}:{each}" for host in range(self.plan.hosts))

    def _agent(self) -> str:
        """What launchers start instead of ssh: the host's name follows the options, then a
        command."""
        if self._launcher is None:
            script = (
                '#!/bin/sh\nwhile [ "${1#-}" != "$1" ]; do [ "$1" = -l ] && shift; shift; done\n'
                "host=$((${1##*.} - 1)); shift\n"
                f'exec ip netns exec mpress-{self.plan.owner}-$host sh -c "$*"\n'
            )
            prefix = f"{AGENT}{self.plan.owner}-"
            with tempfile.NamedTemporaryFile("w", prefix=prefix, delete=False) as file:
                file.write(script)
            self._launcher = Path(file.name)
            self._launcher.chmod(stat.S_IRWXU)
        return str(self._launcher)

    def _remove_agent(self) -> None:
        if self._launcher:
            self._launcher.unlink(missing_ok=True)


def remove(names: list[str]) -> None:
    """Ends what runs in these namespaces, and removes them."""
    pyroute2 = netlink()
    there = set(pyroute2.netns.listnetns())
    for name in names:
        if name not in there:
            continue
        found = subprocess.run(["ip", "netns", "pids", name], capture_output=True, text=True)
        for pid in found.stdout.split():
            try:
                os.kill(int(pid), signal.SIGKILL)
            except ProcessLookupError:
                continue
        try:
            pyroute2.netns.remove(name)
        except FileNotFoundError:
            continue  # another driver cleans, too


def clean() -> list[str]:
    """Removes the clusters of drivers that are no more, and their files; their namespaces."""
    pyroute2 = netlink()
    left = []
    for name in pyroute2.netns.listnetns():
        found = _NAME.fullmatch(name)
        if found and not Path(f"/proc/{found[1]}").exists():
            left.append(name)
    remove(left)
    for agent in Path(tempfile.gettempdir()).glob(f"{AGENT}*-*"):
        owner = agent.name.removeprefix(AGENT).partition("-")[0]
        if owner.isdecimal() and not Path(f"/proc/{owner}").exists():
            agent.unlink(missing_ok=True)
    return left


def environment() -> dict[str, str]:
    """MPICH then talks TCP, by the link: its libraries would take what a host has for itself. Its
    ranks that wait leave the machine's cores to other hosts': they sleep between looks. Open MPI
    has to be told that root may run it."""
    return {**os.environ, "UCX_TLS": "tcp,self", "UCX_NET_DEVICES": "eth0", "FI_PROVIDER": "tcp",
            "FI_TCP_IFACE": "eth0", "MPIR_CVAR_CH4_PROGRESS_THROTTLE": "1",
            "MPIR_CVAR_CH4_PROGRESS_THROTTLE_NO_PROGRESS_COUNT": "50",
            "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}  # fmt: skip


def run(options: argparse.Namespace) -> int:
    plan = checked_plan(options.hosts, options.rate, options.latency)
    ranks = options.ranks or plan.hosts
    with Cluster(plan) as cluster:
        launcher = cluster.mpiexec(ranks)
        if options.codec is None:
            command = [*launcher, "-n", str(ranks), *options.program]
        else:
            command = [str(BIN / "mpress"), "run", "-n", str(ranks), "--codec", options.codec,
                       "--mpiexec", shlex.join(launcher)]  # fmt: skip
            command += ["--report", str(options.report)] if options.report else []
            command += ["--force"] if options.force else []
            command += ["--", *options.program]
        return subprocess.run(command, env=environment()).returncode


def size_of(op: str, text: str, hosts: int) -> str:
    """`mpress bench` counts bytes of a pair in an all-to-all, and else of a rank."""
    try:
        count = _core.parse_bytes(text)
    except ValueError as error:
        raise ClusterError(f"--bytes {error}") from None
    return str(count // hosts if op == "alltoall" else count)


def bench(
    cluster: Cluster, ranks: int, options: argparse.Namespace, *more: str, **settings: str
) -> dict[str, Any]:
    """What `mpress bench` finds in one job, by turns; `settings` are of the environment."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "rows.json"
        command = [str(BIN / "mpress"), "bench", *more, "--mpiexec",
                   shlex.join(cluster.mpiexec(ranks)), "--repeat", str(options.repeat),
                   "--warmup", "2", "--seconds", str(options.seconds), "--json",
                   str(file)]  # fmt: skip
        done = subprocess.run(command, env=environment() | settings, capture_output=True, text=True)
        if done.returncode:
            raise ClusterError(f"{shlex.join(command)}\nended with {done.returncode}:\n"
                               f"{done.stdout}{done.stderr}")  # fmt: skip
        return json.loads(file.read_text())


def measured(cluster: Cluster, op: str, options: argparse.Namespace) -> dict[str, Any]:
    """A call beside the MPI's own; of memory of GPUs, one a rank, beside the same with copies out
    and in. Such ranks reach each other's GPUs, as hosts would not: messages are the MPI's."""
    hosts = cluster.plan.hosts
    specs = [word for spec in options.spec or SPECS for word in ("--spec", spec)]
    size = size_of(op, options.bytes, hosts)
    where = ["--beside", "mpi"]
    if options.memory == "D":
        where = ["--memory", "D", "--link", "mpi", "--beside", "plain"]
    return bench(cluster, hosts, options, op, "-n", str(hosts), "--sizes", size, "--field", "wave",
                 *where, *specs)  # fmt: skip


def collectives(options: argparse.Namespace) -> int:
    plan = checked_plan(options.hosts, options.rate, options.latency)
    document: dict[str, Any] = {
        "format": 1, "kind": "cluster-collectives", "date": time.strftime("%Y-%m-%d"),
        "commit": git_commit(), "hosts": plan.hosts, "rate": plan.rate,
        "latency": plan.latency, "cores": len(os.sched_getaffinity(0)), "bytes": options.bytes,
        "memory": options.memory, "rows": [],
    }  # fmt: skip
    with Cluster(plan) as cluster:
        for op in options.op or OPS:
            found = measured(cluster, op, options)
            for name in ("mpi", "cpu", "gpu", "versions"):
                document[name] = found.get(name)
            for row in found["rows"]:
                document["rows"].append({"op": op, **row})
                print(f"{op:9} {row['path']:14} {1e3 * row['seconds']:8.1f} ms", flush=True)
    if options.json:
        options.json.write_text(json.dumps(document, indent=1) + "\n")
    return 0


def parsed(words: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    commands = parser.add_subparsers(dest="command", required=True)
    for name, about in (("run", "a program"), ("collectives", "measure collective calls")):
        one = commands.add_parser(name, help=about)
        one.add_argument("--hosts", type=int, default=4, help="default 4")
        one.add_argument("--rate", default="1gbit", help="of a host, each way; default 1gbit")
        one.add_argument("--latency", metavar="TIME", help="50us; where the kernel has netem")
        if name == "run":
            one.add_argument("-n", "--ranks", type=int, help="default: one a host")
            one.add_argument("--codec", help="under mpress run; default: plain")
            one.add_argument("--force", action="store_true", help="with --codec")
            one.add_argument("--report", type=Path, help="with --codec")
            one.add_argument("program", nargs="+", metavar="PROGRAM")
        else:
            one.add_argument("--memory", choices=["H", "D"], default="H", help="host or device")
            one.add_argument("--op", action="append", choices=OPS, help="default: all")
            one.add_argument("--spec", action="append", help=f"default: {' '.join(SPECS)}")
            one.add_argument("--bytes", default="16M", help="of a rank; default 16M")
            one.add_argument("--repeat", type=int, default=15, help="samples; default 15")
            one.add_argument("--seconds", type=float, default=60, help="a call; default 60")
            one.add_argument("--json", type=Path, metavar="FILE")
    commands.add_parser("clean", help="remove what killed drivers left")
    return parser.parse_args(words)


def main() -> int:
    options = parsed()
    # Python then leaves by way of what cleans up.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    try:
        if options.command == "clean":
            print(f"removed {len(clean())} namespaces")
            return 0
        return run(options) if options.command == "run" else collectives(options)
    except ClusterError as error:
        print(f"cluster: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130


if __name__ == "__main__":
    sys.exit(main())
