"""`mpress simulate --op`: its model against formulas of textbooks, trends, errors, the command."""

import importlib
import json
import math

import pytest
from execution import BIN, ROOT, execute

from mpress import _core, codec_curves, collective_model, tune
from mpress.collective_model import Call, Codec, Network

IDEAL = codec_curves.of_gpu("ideal", "szp:rel=1e-3")
H200 = codec_curves.of_gpu("h200", "szp:rel=1e-3")
RATE, LATENCY, BYTES = 1e10, 1e-5, 1 << 26
FAST = Network(RATE, LATENCY)


def predict(op, ranks, codec=None, nbytes=BYTES, network=FAST, filled=1.0):
    """Rows by (algorithm, way)."""
    codec = codec or Codec("szp:rel=1e-3", 1.0, *IDEAL)
    rows = collective_model.predict(Call(op, nbytes, 32, filled), network, codec, ranks)
    return {(row["algorithm"], row["way"]): row for row in rows}


def seconds(op, ranks, algorithm, way="raw", **options):
    return predict(op, ranks, **options)[algorithm, way]["seconds"]


@pytest.mark.parametrize("ranks", [2, 3, 8, 13, 64])
def test_raw_times_are_those_of_textbooks(ranks):
    # Thakur et al. 2005, without the additions.
    share, levels = (ranks - 1) / ranks, math.ceil(math.log2(ranks))
    ring = 2 * (ranks - 1) * LATENCY + 2 * share * BYTES / RATE
    assert seconds("allreduce", ranks, "ring") == pytest.approx(ring)
    assert seconds("reduce_scatter", ranks, "ring") == pytest.approx(ring / 2)
    tree = levels * (LATENCY + BYTES / RATE)
    assert seconds("bcast", ranks, "binomial") == pytest.approx(tree)
    assert seconds("reduce", ranks, "binomial") == pytest.approx(tree)
    gathered = (ranks - 1) * (LATENCY + BYTES / RATE)
    assert seconds("allgather", ranks, "ring") == pytest.approx(gathered)
    assert seconds("alltoall", ranks, "pairwise") == pytest.approx(gathered)
    scattered = levels * LATENCY + (ranks - 1) * BYTES / RATE
    assert seconds("scatter", ranks, "binomial") == pytest.approx(scattered)
    assert seconds("gather", ranks, "binomial") == pytest.approx(scattered)


@pytest.mark.parametrize("op", collective_model.OPS)
def test_a_codec_that_takes_no_time_divides_bytes_alone(op):
    codec = Codec("zfp:8", 4.0, *IDEAL)
    rows = predict(op, 12, codec)
    for (algorithm, way), row in rows.items():
        raw = rows[algorithm, "raw"]
        if way != "raw" and row["segments"] == raw["segments"]:
            expected = raw["latency_seconds"] + raw["link_seconds"] / 4
            assert row["seconds"] == pytest.approx(expected), algorithm


def test_in_one_piece_nothing_overlaps():
    # T = latency + encoding + bytes / (ratio B) + decoding, a hop: as in the papers.
    line = {0: 1e-4, 10**9: 1e-4 + 1e-2}
    codec = Codec("szp:rel=1e-3", 8.0, line, line)
    hop = LATENCY + 2 * (1e-4 + BYTES / 1e11) + BYTES / 8 / RATE
    assert seconds("allreduce", 16, "doubling", "hops", codec=codec) == pytest.approx(4 * hop)
    assert seconds("bcast", 16, "binomial", "hops", codec=codec) == pytest.approx(4 * hop)
    once = 4 * (LATENCY + BYTES / 8 / RATE) + 2 * (1e-4 + BYTES / 1e11)
    assert seconds("bcast", 16, "binomial", "compressed", codec=codec) == pytest.approx(once)


def test_of_what_overlaps_the_slowest_counts_in_full():
    encode, decode = {0: 0.0, 10**9: 1e-2}, {0: 0.0, 10**9: 5e-3}
    # On the link a fifth of 64 MiB takes 1.3 ms, encoding 0.7 ms, decoding 0.3 ms; 16 chunks.
    codec = Codec("szp:rel=1e-3", 5.0, encode, decode, chunk=4 << 20)
    link = BYTES / 5 / RATE
    chunked = LATENCY + link + (4 << 20) / 1e11 + (4 << 20) / 2e11
    assert seconds("bcast", 2, "linear", "compressed", codec=codec) == pytest.approx(chunked)


def test_rings_lose_short_vectors_and_win_long_ones():
    short, long = (predict("allreduce", 64, nbytes=size) for size in (4096, 1 << 28))
    assert short["doubling", "raw"]["seconds"] < short["ring", "raw"]["seconds"]
    assert long["ring", "raw"]["seconds"] < long["doubling", "raw"]["seconds"]
    # Crossover, by hand: log2 n (a + S b) = 2 (n - 1) a + 2 (n - 1) / n S b.
    size = (126 - 6) * LATENCY * RATE / (6 - 2 * 63 / 64)
    for factor, wins in ((0.98, "doubling"), (1.02, "ring")):
        rows = predict("allreduce", 64, nbytes=factor * size)
        own = {name: rows[name, "raw"]["seconds"] for name in ("ring", "doubling")}
        assert min(own, key=own.get) == wins


def test_a_codec_in_each_hop_of_a_ring_loses_on_many_ranks():
    codec = Codec("szp:rel=1e-3", 30.0, *H200)
    rows = {n: predict("allreduce", n, codec) for n in (8, 1024)}
    ring, doubling = ("ring", "hops"), ("doubling", "hops")
    assert rows[8][ring]["seconds"] < rows[8][doubling]["seconds"]
    assert rows[1024][doubling]["seconds"] < rows[1024][ring]["seconds"]


def test_grids_of_sums_get_finer_with_the_ranks():
    codec = Codec("szp:rel=1e-3", 8.0, *IDEAL)  # 4 bits a value
    call = Call("allreduce", BYTES)
    assert collective_model.ratios(call, codec, 16, 1, 2) == [32 / 8, 32 / 10]
    on_hosts = collective_model.ratios(call, codec, 16, 4, 3)
    assert on_hosts == [32 / 8, 32 / 9, 32 / 10]
    empty = Call("allreduce", BYTES, filled=0.0)
    assert collective_model.ratios(empty, codec, 16, 1, 2) == [8.0, 8.0]
    # zfp's rate stays, and so does the ratio where codecs serve hops, whose error nothing bounds.
    assert collective_model.ratios(call, Codec("zfp:4", 8.0, *IDEAL), 16, 1, 2) == [8.0, 8.0]
    rows = predict("allreduce", 16, codec)
    assert rows["ring", "hops"]["ratio"] == pytest.approx(8)
    assert rows["two-shot", "compressed"]["ratio"] == pytest.approx(2 / (1 / 4 + 10 / 32))


@pytest.mark.parametrize("op", collective_model.OPS)
def test_more_of_anything_takes_longer_and_more_ratio_less(op):
    codec = Codec("szp:rel=1e-3", 8.0, *H200, chunk=4 << 20)
    base = predict(op, 16, codec)

    def compare(other, is_in_order):
        for key, row in base.items():
            if row["segments"] == other[key]["segments"]:
                assert is_in_order(row["seconds"], other[key]["seconds"]), key

    compare(predict(op, 16, codec, nbytes=2 * BYTES), lambda one, two: one < two)
    compare(predict(op, 16, codec, network=Network(RATE / 2, LATENCY)), lambda one, two: one < two)
    compare(predict(op, 16, codec, network=Network(RATE, 9e-5)), lambda one, two: one < two)
    better = Codec("szp:rel=1e-3", 16.0, *H200, chunk=4 << 20)
    compare(predict(op, 16, better), lambda one, two: one >= two)


def test_hosts_share_their_link():
    inside = Network(RATE, LATENCY, 2e11, 1e-5, members=8)
    alone = Network(RATE, LATENCY, 2e11, 1e-5, members=64)
    # All that a host has for others goes through one link: rings pass it once, doublings eight
    # times in each of three rounds.
    ring = 2 * 63 / 64 * BYTES / RATE + 126 * LATENCY
    assert seconds("allreduce", 64, "ring", network=inside) == pytest.approx(ring)
    doubling = 3 * (8 * BYTES / RATE + LATENCY) + 3 * (BYTES / 2e11 + 1e-5)
    assert seconds("allreduce", 64, "doubling", network=inside) == pytest.approx(doubling)
    within = 6 * (BYTES / 2e11 + 1e-5)
    assert seconds("allreduce", 64, "doubling", network=alone) == pytest.approx(within)


@pytest.mark.parametrize(
    ("algorithm", "op"),
    [("ring", "allreduce"), ("doubling", "allreduce"), ("halving", "reduce_scatter"),
     ("ring", "reduce_scatter"), ("binomial", "reduce")],
)  # fmt: skip
@pytest.mark.parametrize("ranks", [2, 5, 8, 24])
def test_schedules_count_what_formulas_say(algorithm, op, ranks):
    pieces, [(rounds, _)] = _core.sum_rounds(algorithm, op, ranks)
    counted = [tuple(value / pieces for value in one[1:4]) for one in rounds]
    assert counted == [pytest.approx(one[:3]) for one in _core.sum_work(algorithm, op, ranks)]


def test_thousands_of_ranks_are_counted():
    rows = predict("allreduce", 2048)
    ring = 2 * 2047 * (LATENCY + BYTES / 2048 / RATE)
    assert rows["ring", "raw"]["seconds"] == pytest.approx(ring)
    assert rows["doubling", "raw"]["seconds"] == pytest.approx(11 * (LATENCY + BYTES / RATE))
    moved = predict("allgather", 4096, nbytes=4096)
    assert moved["doubling", "raw"]["link_seconds"] == pytest.approx(4095 * 4096 / RATE)
    assert moved["doubling", "raw"]["rounds"] == 12


def test_the_page_beside_gzccl_is_of_this_model(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "bench"))
    report = importlib.import_module("report_simulated")
    text = report.page(report.cases())
    again = "make it again: python bench/report_simulated.py"
    assert report.PAGE.read_text() == text, again
    assert report.digest(text) in report.PICTURE.read_text(), again
    # The codec of the table is the one that the page derives.
    derived = report.calibrated()
    assert derived["call"] == pytest.approx(codec_curves.A100_CALL_SECONDS, rel=0.03)
    assert derived["rate"] == pytest.approx(codec_curves.A100_RATE, rel=0.03)
    assert derived["round"] == pytest.approx(report.CODED_ROUND, rel=0.03)


CALL = ["--op", "allreduce", "--bytes", "64M", "--link", "100Gbit", "--ratio", "8"]


def simulate(*options):
    return execute([BIN / "mpress", "simulate", *options])


def test_the_command_says_that_it_predicts(tmp_path):
    out, picture = tmp_path / "predicted.json", tmp_path / "predicted.svg"
    done = simulate(*CALL, "--ranks", "8,64", "--hosts-of", "4", "--json", out, "--plot", picture)
    assert done.status == 0, done.output
    assert "PREDICTION by a model, nothing was measured" in done.stdout
    assert "log2 N bits more" in done.stdout
    document = json.loads(out.read_text())
    assert document["kind"] == "collective-projection" and document["projection"] is True
    assert {(row["ranks"], row["algorithm"]) for row in document["rows"]} == {
        (ranks, name) for ranks in (8, 64) for name in ("two-shot", "ring", "doubling")
    }
    assert [row["ranks"] for row in document["fastest"]] == [8, 64]
    assert "PREDICTION" in picture.read_text()


def test_profiles_have_codecs(tmp_path):
    line = {65536: 1e-3, 1 << 24: 1.0}
    file = tmp_path / "profile"
    file.write_text(tune.Profile("here", codecs={("szp", "host"): (line, line)}).text())
    out = tmp_path / "predicted.json"
    done = simulate(*CALL, "--ranks", "2", "--profile", file, "--json", out)
    assert done.status == 0, done.output
    assert "nothing overlaps" in done.stdout and "here, host" in done.stdout
    rows = {(r["algorithm"], r["way"]): r for r in json.loads(out.read_text())["rows"]}
    hop = rows["doubling", "hops"]
    assert hop["encode_seconds"] == pytest.approx(codec_curves.seconds(line, 64 << 20))
    parts = ("latency_seconds", "link_seconds", "encode_seconds", "decode_seconds")
    assert hop["seconds"] == pytest.approx(sum(hop[name] for name in parts))
    done = simulate(*CALL, "--spec", "mpc", "--profile", file)
    assert done.status == 2 and "knows no times of mpc" in done.stderr


def test_measured_calls_stand_beside_the_model(tmp_path):
    rows = [
        {"path": path, "job": "forced", "bytes": 1 << 20, "seconds": 1e-3, "ratio": ratio}
        for path, ratio in (("none", 1.0), ("szp:rel=0.001", 4.0), ("ring/none", 1.0),
                            ("ring/szp:rel=0.001", 6.0), ("mpi", None), ("zfp:8", 4.0))
    ]  # fmt: skip
    file, out = tmp_path / "bench.json", tmp_path / "out.json"
    file.write_text(json.dumps({"benchmark": "allreduce", "ranks": 4, "rows": rows}))
    done = simulate("--op", "allreduce", "--link", "10Gbit", "--beside", file, "--json", out)
    assert done.status == 0, done.output
    assert "of 4 within 20 %" in done.stdout
    beside = {row["path"]: row for row in json.loads(out.read_text())["beside"]}
    assert [row["algorithm"] for row in beside.values()] == ["two-shot", "two-shot", "ring", "ring"]
    ring = 6 * (1e-5 + (1 << 18) / 1.25e9)
    assert beside["ring/none"]["model_seconds"] == pytest.approx(ring)
    # What the model makes of a link is what is fitted to that.
    for row in rows[:4]:
        row["seconds"] = beside[row["path"]]["model_seconds"]
    rows.append(dict(rows[2], bytes=1 << 12, seconds=6 * (1e-5 + (1 << 10) / 1.25e9)))
    file.write_text(json.dumps({"benchmark": "allreduce", "ranks": 4, "rows": rows}))
    done = simulate("--op", "allreduce", "--beside", file, "--json", out)
    assert done.status == 0, done.output
    assert "5 of 5 within 20 %" in done.stdout and "fitted to raw rows" in done.stdout
    network = json.loads(out.read_text())["network"]
    assert network["rate"] == pytest.approx(1.25e9) and network["latency"] == pytest.approx(1e-5)
    # A file of bench/reductions.py has several operations.
    every = [row | {"op": op} for row in rows for op in ("allreduce", "reduce")]
    file.write_text(json.dumps({"kind": "reductions", "ranks": 4, "rows": every}))
    done = simulate("--op", "allreduce", "--link", "10Gbit", "--beside", file)
    assert done.status == 0 and "5 of 5 within 20 %" in done.stdout
    done = simulate("--op", "bcast", "--link", "10Gbit", "--beside", file)
    assert done.status == 2 and "expected one of mpress bench bcast" in done.stderr


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ([], "expected --app wave, or --op"),
        (["--app", "wave", *CALL], "expected --app wave, or --op"),
        (["--app", "wave", "--bytes", "1M"], "--bytes belongs to --op"),
        (["--app", "wave"], "--app wave: expected --from"),
        ([*CALL, "--link-rate", "1Gbit"], "--link-rate belongs to --app wave"),
        ([*CALL, "--grid", "8x8x8"], "--grid belongs to --app wave"),
        (["--op", "scan"], "--op 'scan'"),
        (["--op", "bcast", "--link", "1Gbit", "--ratio", "2"], "expected --bytes"),
        (["--op", "bcast", "--bytes", "1M", "--ratio", "2"], "expected --link"),
        ([*CALL[:-2]], "expected --ratio"),
        ([*CALL, "--ranks", "0"], "--ranks '0'"),
        ([*CALL, "--ranks", "8,1"], "--ranks '8,1'"),
        ([*CALL, "--ranks", "1000000"], "16384 at most"),
        ([*CALL[:-1], "0.5"], "--ratio 0.5"),
        ([*CALL[:-1], "nan"], "--ratio nan"),
        ([*CALL, "--link", "0"], "--link"),
        ([*CALL, "--bytes", "0"], "--bytes 0"),
        ([*CALL, "--latency", "inf"], "--latency inf"),
        ([*CALL, "--spec", "zfp:8"], "--ratio 8: zfp:8 has the ratio of its rate"),
        ([*CALL, "--spec", "auto"], "--spec auto"),
        ([*CALL, "--gpu", "b300"], "--gpu 'b300'"),
        ([*CALL, "--gpu", "h200", "--profile", "x"], "--gpu and --profile"),
        ([*CALL, "--profile", "/nowhere"], "--profile /nowhere"),
        ([*CALL, "--hosts-of", "0"], "--hosts-of 0"),
        ([*CALL, "--link-within", "1Gbit"], "--link-within: expected --hosts-of"),
        ([*CALL, "--filled", "2"], "--filled 2"),
        ([*CALL, "--type", "f16"], "--type 'f16'"),
        ([*CALL, "--plot", "x.txt"], "--plot x.txt"),
    ],
)
def test_wrong_options_are_named(options, message):
    done = simulate(*options)
    assert done.status == 2
    assert message in done.stderr and done.stderr.count("\n") == 1
