"""The cost model of `mpress simulate`, against cases computed by hand; the command."""

import json
import math

import pytest
from execution import BIN, execute

from mpress import halo_model
from mpress.halo_model import CodecCost, Machine, ModelError, Scaling

NONE = CodecCost("none")
BOX = (100, 200, 50)


@pytest.mark.parametrize(
    ("ranks", "axes", "split"),
    [
        (1, (0, 1, 2), (1, 1, 1)),
        (4, (0, 1), (2, 2, 1)),
        (8, (0, 1, 2), (2, 2, 2)),
        (12, (0, 1, 2), (3, 2, 2)),
        (512, (0, 1), (32, 16, 1)),
        (512, (0, 1, 2), (8, 8, 8)),
        (7, (0, 2), (7, 1, 1)),
        (6, (1,), (1, 6, 1)),
    ],
)
def test_splits_are_balanced(ranks, axes, split):
    assert halo_model.balanced_split(ranks, axes) == split


def test_faces_are_those_of_the_rank_with_most_neighbours():
    # One neighbour along x, two along y, none along z.
    assert halo_model.face_cells((10, 20, 30), (2, 3, 1), 4) == [2400, 1200, 1200]
    assert halo_model.interior_cells((10, 20, 30), (2, 3, 1), 4) == 6 * 12 * 30
    assert halo_model.face_cells((10, 20, 30), (1, 1, 1), 4) == []
    assert halo_model.interior_cells((6, 20, 30), (4, 1, 1), 4) == 0


def test_exchange_of_raw_messages():
    machine = Machine(0, 1e9, 1e-3)
    assert halo_model.exchange_seconds([3_000_000, 1_000_000], machine, NONE) == pytest.approx(
        2 * 1e-3 + 4e-3
    )
    assert halo_model.exchange_seconds([], machine, NONE) == 0


def test_exchange_with_a_codec():
    machine = Machine(0, 1e9, 0)
    codec = CodecCost("zfp:8", ratio=4, encode_rate=4e9, decode_rate=8e9)
    # 8 MB: 2 ms of encoding, 2 ms on the link, 1 ms of decoding.
    one_chunk = halo_model.exchange_seconds([8_000_000], machine, codec, chunk_bytes=8_000_000)
    assert one_chunk == pytest.approx(5e-3)
    four_chunks = halo_model.exchange_seconds([8_000_000], machine, codec, chunk_bytes=2_000_000)
    assert four_chunks == pytest.approx(2e-3 + (2e-3 + 1e-3) / 4)
    # Messages of their own overlap as chunks do.
    assert halo_model.exchange_seconds([4_000_000, 4_000_000], machine, codec, 8_000_000) == (
        pytest.approx(2e-3 + (2e-3 + 1e-3) / 2)
    )


def test_the_interior_hides_the_exchange_or_not():
    # x faces of 4 x 200 x 50 cells, 160 kB each; 2 neighbours; the interior is 92 x 200 x 50 cells.
    fast = halo_model.step(BOX, (3, 1, 1), Machine(1e-9, 1e12, 0), NONE, 4, 4)
    assert fast.seconds == pytest.approx(1e6 * 1e-9)
    slow = halo_model.step(BOX, (3, 1, 1), Machine(1e-9, 1e8, 0), NONE, 4, 4)
    assert slow.exchange == pytest.approx(320_000 / 1e8)
    assert slow.seconds == pytest.approx(3.2e-3 + 80_000 * 1e-9)


def measured(machine, codecs, counts=((1, (1, 1, 1)), (2, (2, 1, 1)), (4, (2, 2, 1))), gpus=4):
    """A file of bench/wave_scaling.py as this machine would have written it."""
    rows = []
    for ranks, split in counts:
        raw = 4 * sum(halo_model.face_cells(BOX, split, 4))
        for codec in codecs if ranks > 1 else [NONE]:
            seconds = halo_model.step(BOX, split, machine, codec, 4, 4).seconds
            rows.append({
                "ranks": ranks, "split": list(split), "spec": codec.spec, "transport": "tcp",
                "step_seconds": seconds, "flops": 36 * math.prod(BOX) * ranks / seconds,
                "raw_bytes": raw, "wire_bytes": raw / codec.ratio,
                "encode_seconds": raw / codec.encode_rate,
                "decode_seconds": raw / codec.decode_rate,
            })  # fmt: skip
    return {
        "kind": "wave-scaling", "device": "cuda", "gpus": ["GPU"] * gpus, "mpi": "MPI",
        "date": "2026-01-01", "commit": "0", "box": list(BOX), "halo": 4, "element_bytes": 4,
        "rows": rows,
    }  # fmt: skip


MACHINE = Machine(1e-9, 1e8, 1e-5)
CODECS = [NONE, CodecCost("szp:abs=1", 8.0, 1e9, 2e9)]


def test_calibration_finds_the_machine():
    machine, codecs, ranks = halo_model.calibrate(measured(MACHINE, CODECS), "tcp", 1e-5)
    assert ranks == 4
    assert machine.cell_seconds == pytest.approx(1e-9)
    assert machine.link_rate == pytest.approx(1e8)
    assert [codec.spec for codec in codecs] == ["none", "szp:abs=1"]
    assert codecs[1].ratio == pytest.approx(8)
    assert codecs[1].encode_rate == pytest.approx(1e9)
    fitted = halo_model.fit(measured(MACHINE, CODECS), "tcp", machine, codecs)
    assert len(fitted) == 5
    for row in fitted:
        assert row["model_seconds"] == pytest.approx(row["measured_seconds"])


def test_ranks_that_share_a_gpu_do_not_calibrate():
    document = measured(MACHINE, CODECS, gpus=2)
    assert halo_model.calibrate(document, "tcp", 1e-5)[2] == 2
    assert {row["ranks"] for row in halo_model.fit(document, "tcp", MACHINE, CODECS)} == {1, 2}
    with pytest.raises(ModelError, match="that have a GPU each"):
        halo_model.calibrate(measured(MACHINE, CODECS, gpus=1), "tcp", 1e-5)


@pytest.mark.parametrize(
    ("machine", "codecs", "latency", "message"),
    [
        (Machine(1e-9, 1e12, 0), CODECS, 0, "hidden by the computation"),
        (MACHINE, CODECS[1:], 0, "no steps of 4 ranks with raw messages"),
        (MACHINE, CODECS, 1.0, "more than the exchange took"),
    ],
)
def test_what_cannot_calibrate(machine, codecs, latency, message):
    with pytest.raises(ModelError, match=message):
        halo_model.calibrate(measured(machine, codecs), "tcp", latency)


def test_weak_scaling_saturates_with_the_neighbours():
    document = measured(MACHINE, CODECS)
    rows = halo_model.project(document, MACHINE, [NONE], Scaling(box=BOX), [1, 4, 16, 64], [0, 1])
    alone, four, sixteen, sixtyfour = (row["step_seconds"] for row in rows)
    assert alone < four < sixteen == sixtyfour
    assert rows[0]["efficiency"] == pytest.approx(1)
    assert rows[3]["flops"] == pytest.approx(4 * rows[2]["flops"])
    # By hand, of 16: two neighbours along x and y, 2 * (40000 + 20000) cells of 4 bytes.
    exchange = 4 * 1e-5 + 2 * (4 * 200 * 50 + 4 * 100 * 50) * 4 / 1e8
    shells = (1e6 - 92 * 192 * 50) * 1e-9
    assert sixteen == pytest.approx(exchange + shells)


def test_strong_scaling_shares_the_grid():
    document = measured(MACHINE, CODECS)
    rows = halo_model.project(
        document, MACHINE, CODECS, Scaling(grid=(64, 30, 20)), [4, 16, 1024], [0, 1]
    )
    # 1024 ranks would have less than a halo each.
    assert [(row["ranks"], row["spec"], row["box"]) for row in rows] == [
        (4, "none", (32, 15, 20)), (4, "szp:abs=1", (32, 15, 20)),
        (16, "none", (16, 8, 20)), (16, "szp:abs=1", (16, 8, 20)),
    ]  # fmt: skip
    for row in rows:
        assert row["flops"] == pytest.approx(36 * 64 * 30 * 20 / row["step_seconds"])


@pytest.fixture
def simulate(tmp_path):
    """simulate(document, *options): `mpress simulate`."""

    def run(document, *options):
        file = tmp_path / "measured.json"
        file.write_text(json.dumps(document))
        return execute([BIN / "mpress", "simulate", "--app", "wave", "--from", file, *options])

    return run


def test_the_command_labels_its_projection(simulate, tmp_path):
    out, picture = tmp_path / "projection.json", tmp_path / "projection.svg"
    done = simulate(
        measured(MACHINE, CODECS), "--ranks", "4,512", "--json", out, "--plot", picture,
        "--link-rate", "10Gbit",
    )  # fmt: skip
    assert done.status == 0, done.output
    assert "PROJECTION by a cost model, not a measurement" in done.stdout
    assert "ASSUMED" in done.stdout
    document = json.loads(out.read_text())
    assert document["projection"] is True
    assert document["link_rate_measured"] is False
    assert document["machine"]["link_rate"] == 1.25e9
    assert {(row["ranks"], tuple(row["split"])) for row in document["rows"]} == {
        (4, (2, 2, 1)), (512, (32, 16, 1)),
    }  # fmt: skip
    assert "PROJECTION" in picture.read_text()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--ranks", "4,x"], "--ranks '4,x'"),
        (["--scaling", "both"], "--scaling 'both'"),
        (["--grid", "10x10x10"], "--grid is for --scaling strong"),
        (["--axes", "xx"], "--axes 'xx'"),
        (["--link-rate", "fast"], "--link-rate"),
        (["--transport", "shm"], "no steps by shm"),
        (["--scaling", "strong", "--grid", "8x8x8", "--ranks", "64"], "too few cells"),
        (["--app", "stencil"], "--app 'stencil'"),
    ],
)
def test_wrong_options_are_named(simulate, options, message):
    done = simulate(measured(MACHINE, CODECS), *options)
    assert done.status == 2
    assert message in done.stderr and done.stderr.count("\n") == 1


def test_other_files_are_refused(simulate):
    done = simulate({"kind": "p2p"})
    assert done.status == 2 and "was not written by bench/wave_scaling.py" in done.stderr
