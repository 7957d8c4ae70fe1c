"""Weak scaling of apps/wave, raw and with codecs, into bench/results/wave-scaling-four-h100.json:
python bench/wave_scaling.py [--mpiexec CMD] [--box NXxNYxNZ].

Every rank has the same box of cells, whatever their number. Codecs take turns; a run's first steps,
until the wave is everywhere, are not timed. Before that, a smaller grid tells what codecs do to the
result, and to which tolerance zfp:8 corresponds: that needs no GPU, as CPUs compute the same bits,
and may be done elsewhere (--parts). `mpress simulate --app wave` projects the results to more
ranks, bench/report.py draws them.
"""

import argparse
import base64
import json
import math
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
import zlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

import mpress
from mpress import codec_bench, trace
from mpress.p2p import jobs, loopback

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "apps" / "wave"))
import program as wave  # noqa: E402

SPLITS = {1: (1, 1, 1), 2: (2, 1, 1), 4: (2, 2, 1)}
HALO = 4
COUNTED = ("messages", "raw_bytes", "wire_bytes", "encode_seconds", "decode_seconds")

Triple = tuple[int, int, int]
Row = dict[str, Any]


class Runner:
    """Starts the program under `mpress run`."""

    def __init__(self, program: Path, options: argparse.Namespace, folder: Path) -> None:
        self.program, self.options, self.folder = program, options, folder
        self.mpi: str | None = None

    def run(self, ranks: int, box: Triple, spec: str, transport: str, *, steps: int, untimed: int,
            output: Path | None = None) -> tuple[wave.Times, Row]:  # fmt: skip
        """Times, and what mpress counted while they were taken, of all ranks together."""
        report = self.folder / "report.json"
        command = [sys.executable, "-m", "mpress", "run", "-n", ranks, "--codec", spec, "--force"]
        command += ["--threshold", 0, "--report", report]
        command += ["--mpiexec", self.options.mpiexec] if self.options.mpiexec else []
        command += ["--", self.program, *self.arguments(ranks, box, steps, untimed)]
        command += ["--output", output] if output else []
        environment = {**os.environ, **jobs.transport_environment(transport)}
        process = subprocess.Popen(
            [str(word) for word in command], env=environment, text=True, stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        )  # fmt: skip
        printed, before = "", {}
        assert process.stdout is not None
        for line in process.stdout:
            printed += line
            if "the timed steps begin" in line:
                before = self.counters(Path(f"{report}.ranks"))
        if process.wait() != 0:
            raise SystemExit(f"wave_scaling: {' '.join(map(str, command))}\n{printed}")
        document = json.loads(report.read_text())
        self.mpi = document["mpi"]
        after = {name: document["totals"][name] for name in COUNTED}
        after["loopback_bytes"] = loopback.sent_bytes()
        if after["messages"] == before.get("messages"):
            before = {}  # the program was faster than this one
        counted = {name: after[name] - before.get(name, 0) for name in after}
        return wave.times(printed), counted

    def arguments(self, ranks: int, box: Triple, steps: int, untimed: int) -> list[str]:
        split = SPLITS[ranks]
        grid = [cells * parts for cells, parts in zip(box, split, strict=True)]
        spread = self.options.shot_spacing
        shots = [max(1, round(grid[axis] / spread)) for axis in (0, 1)]
        return [
            "--grid", "x".join(map(str, grid)), "--split", "x".join(map(str, split)),
            "--steps", str(steps), "--untimed", str(untimed), "--device", self.options.device,
            "--shots", "x".join(map(str, shots)), "--source", f"0,0,{grid[2] // 2}",
        ]  # fmt: skip

    @staticmethod
    def counters(records: Path) -> Row:
        totals = trace.merge(records)["totals"]
        return {name: totals[name] for name in COUNTED} | {"loopback_bytes": loopback.sent_bytes()}


def field(prefix: Path, name: str, shape: Sequence[int]) -> np.ndarray:
    return np.fromfile(f"{prefix}-{name}.f32", np.float32).reshape(shape)


def faces(values: np.ndarray, split: Triple) -> np.ndarray:
    """The packed faces that ranks would send of a field of the whole grid, one after another."""
    found = []
    for axis, parts in enumerate(split):
        for part in range(1, parts):
            border = values.shape[axis] * part // parts
            for first in (border - HALO, border):
                found.append(np.take(values, range(first, first + HALO), axis).reshape(-1))
    return np.concatenate(found)


def rms(values: np.ndarray) -> float:
    return math.sqrt(float(np.mean(np.square(values, dtype=np.float64))))


def two_digits(value: float) -> float:
    return float(f"{value:.2g}")


def accuracy(runner: Runner, box: Triple, steps: int) -> Row:
    """What codecs do to the result on a small grid; rows name the codecs to be measured. The bound
    of szp is the one whose result is as far off as that of zfp:8, root mean square."""
    ranks = max(runner.options.ranks)
    split = SPLITS[ranks]
    shape = [cells * parts for cells, parts in zip(box, split, strict=True)]
    prefix, last = runner.folder / "field", f"{steps:06d}"

    def final(spec: str) -> np.ndarray:
        runner.run(ranks, box, spec, runner.options.transports[0], steps=steps, untimed=0,
                   output=prefix)  # fmt: skip
        return field(prefix, last, shape)

    exact = final("none")
    velocity = field(prefix, "velocity", shape)
    largest = float(np.abs(exact).max())
    errors = {spec: final(spec) - exact for spec in ("mpc", "zfp:8")}
    zfp, sent = mpress.codec("zfp:8"), faces(exact, split)
    # Errors of szp are spread evenly within its bound. Those of the result grow with the bound.
    first = two_digits(math.sqrt(3) * rms(zfp.decode(zfp.encode(sent)) - sent))
    off = rms(final(f"szp:abs={first:g}") - exact)
    bound = two_digits(first * rms(errors["zfp:8"]) / off) if off > 0 else first
    errors[f"szp:abs={bound:g}"] = final(f"szp:abs={bound:g}") - exact
    middle = shape[1] // 2
    return {
        "device": runner.options.device, "box": box, "ranks": ranks, "split": split,
        "steps": steps, "bound": bound, "largest": largest, "rms": rms(exact),
        "rows": [
            {"spec": spec, "max_error": float(np.abs(error).max()) / largest,
             "rms_error": rms(error) / largest}
            for spec, error in errors.items()
        ],
        "sections": {
            "velocity": packed_section(velocity[:, middle]),
            "pressure": packed_section(exact[:, middle]),
            **{f"error {spec}": packed_section(error[:, middle])
               for spec, error in errors.items() if spec != "mpc"},
        },
    }  # fmt: skip


def packed_section(values: np.ndarray) -> Row:
    """A plane as bytes: value = scale * byte, of all but the largest values."""
    scale = float(np.percentile(np.abs(values), 99.9)) / 127 or 1.0
    levels = np.clip(np.rint(values / scale), -127, 127).astype(np.int8)
    text = base64.b64encode(zlib.compress(levels.tobytes(), 9)).decode()
    return {"shape": values.shape, "scale": scale, "data": text}


def weak_scaling(runner: Runner, box: Triple, specs: Sequence[str], ranks: int,
                 transport: str) -> Iterator[list[Row]]:  # fmt: skip
    """A row a codec, medians of its runs so far, after each run."""
    options = runner.options
    specs = ["none"] if ranks == 1 else specs
    seen: dict[str, list[tuple[wave.Times, Row]]] = {spec: [] for spec in specs}
    for turn in range(1 if ranks == 1 else options.repeat):
        for spec in specs if turn % 2 == 0 else specs[::-1]:
            begin = time.monotonic()
            seen[spec].append(runner.run(ranks, box, spec, transport, steps=options.steps,
                                         untimed=options.untimed))  # fmt: skip
            one = seen[spec][-1][0]
            print(
                f"{transport} {ranks} {spec:14} {1e3 * one.step_seconds:8.3f} ms a step, waiting "
                f"{one.waited_share:4.0%} ({time.monotonic() - begin:.1f} s)",
                flush=True,
            )
            yield [row(spec, ranks, transport, runs) for spec, runs in seen.items() if runs]


def row(spec: str, ranks: int, transport: str, runs: list[tuple[wave.Times, Row]]) -> Row:
    times = [one for one, _ in runs]
    total = {name: sum(counted[name] for _, counted in runs) for name in runs[0][1]}
    split = SPLITS[ranks]
    sends = sum(2 * (parts - 1) * ranks // parts for parts in split)  # of all ranks in a step
    # Counters were read while the timed steps had begun: messages tell how many they saw.
    rank_steps = ranks * total["messages"] / sends if sends else 0

    def each(name: str) -> float:
        return total[name] / rank_steps if rank_steps else 0.0

    middle = statistics.median
    return {
        "ranks": ranks, "split": split, "spec": spec, "transport": transport,
        "step_seconds": middle(one.step_seconds for one in times),
        "samples": [one.step_seconds for one in times],
        "flops": middle(one.flops for one in times),
        "waited_share": middle(one.waited_share for one in times),
        **{name: each(name) for name in COUNTED if name != "messages"},
        "loopback_share": total["loopback_bytes"] / max(total["wire_bytes"], 1),
    }  # fmt: skip


def gpu_names() -> list[str]:
    if shutil.which("nvidia-smi") is None:
        return []
    query = ["nvidia-smi", "--query-gpu=name", "--format=csv,noheader"]
    done = subprocess.run(query, capture_output=True, text=True)
    return [line.strip() for line in done.stdout.splitlines()] if done.returncode == 0 else []


def triple(text: str) -> Triple:
    x, y, z = (int(part) for part in text.split("x"))
    return x, y, z


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--json", type=Path, default=HERE / "results" / "wave-scaling-four-h100.json"
    )
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda")
    parser.add_argument("--mpicc", default="mpicc")
    parser.add_argument("--nvcc", default="nvcc")
    parser.add_argument("--mpiexec", help="launcher, with its own options")
    parser.add_argument("--transports", type=lambda text: text.split(","), default=["tcp"])
    parser.add_argument("--ranks", default=[1, 2, 4],
                        type=lambda text: [int(n) for n in text.split(",")])  # fmt: skip
    parser.add_argument("--box", type=triple, default=(768, 768, 256), help="cells of a rank")
    parser.add_argument("--accuracy-box", type=triple, default=(192, 192, 160))
    parser.add_argument("--steps", type=int, default=700)
    parser.add_argument("--untimed", type=int, default=550)
    parser.add_argument("--repeat", type=int, default=3, help="runs of a codec")
    parser.add_argument("--shot-spacing", type=int, default=128, help="cells between the sources")
    parser.add_argument("--parts", default="accuracy,scaling", help="the file keeps the other one")
    parser.add_argument("--program", type=Path, help="apps/wave, compiled already")
    options = parser.parse_args()
    if wrong := [n for n in options.ranks if n not in SPLITS]:
        parser.error(f"--ranks: expected some of {sorted(SPLITS)}, not {wrong}")
    return options


def main() -> None:
    options = parse()
    begin = time.monotonic()
    document = json.loads(options.json.read_text()) if options.json.exists() else {}
    with tempfile.TemporaryDirectory(prefix="mpress-wave-") as name:
        folder = Path(name)
        program = options.program or folder / "wave"
        if options.program is None:
            nvcc = shutil.which(options.nvcc) or options.nvcc if options.device == "cuda" else None
            wave.build(program, options.mpicc, ["-march=native"], nvcc)
        runner = Runner(program, options, folder)
        if "accuracy" in options.parts:
            document["accuracy"] = accuracy(runner, options.accuracy_box, options.steps)
            options.json.write_text(json.dumps(document, indent=1) + "\n")
            print(f"accuracy: {time.monotonic() - begin:.0f} s", flush=True)
        if "scaling" in options.parts:
            document = codec_bench.document([]) | {
                "kind": "wave-scaling", "device": options.device, "gpus": gpu_names(),
                "cores": os.cpu_count(), "box": options.box, "halo": HALO, "element_bytes": 4,
                "steps": options.steps - options.untimed, "untimed": options.untimed,
                "repeat": options.repeat, "shot_spacing": options.shot_spacing,
                "sees_loopback": loopback.is_seen(), "accuracy": document["accuracy"],
            }  # fmt: skip
            specs = ["none", *(one["spec"] for one in document["accuracy"]["rows"])]
            for transport in options.transports:
                for ranks in options.ranks:
                    done = document["rows"]
                    for rows in weak_scaling(runner, options.box, specs, ranks, transport):
                        document |= {"rows": done + rows, "mpi": runner.mpi}
                        options.json.write_text(json.dumps(document, indent=1) + "\n")
    print_document(document)


def print_document(document: Mapping[str, Any]) -> None:
    for one in document.get("accuracy", {}).get("rows", []):
        print(f"{one['spec']:16} error {one['max_error']:.2e} (rms {one['rms_error']:.2e}) of the "
              "largest pressure")  # fmt: skip
    rows = document.get("rows", [])
    raw = {(r["transport"], r["ranks"]): r for r in rows if r["spec"] == "none"}
    for one in rows:
        change = one["step_seconds"] / raw[one["transport"], one["ranks"]]["step_seconds"] - 1
        print(
            f"{one['transport']} {one['ranks']} {one['spec']:16} "
            f"{1e3 * one['step_seconds']:8.3f} ms {change:+6.1%}  {one['flops'] / 1e9:9.1f} GFLOP/s"
            f"  waiting {one['waited_share']:4.0%}  ratio "
            f"{one['raw_bytes'] / max(one['wire_bytes'], 1):6.2f}  encode "
            f"{1e3 * one['encode_seconds']:.3f} decode {1e3 * one['decode_seconds']:.3f} ms  "
            f"loopback {one['loopback_share']:.2f}"
        )


if __name__ == "__main__":
    main()
