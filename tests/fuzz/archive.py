"""The inputs that fuzzing kept, in one file: corpus.tar.xz holds TARGET/NUMBER.

Past findings have names of their own and lie beside it, in regressions/TARGET.
"""

import io
import lzma
import tarfile
from collections.abc import Mapping
from pathlib import Path

HERE = Path(__file__).parent
ARCHIVE = HERE / "corpus.tar.xz"
REGRESSIONS = HERE / "regressions"


def read() -> dict[str, list[bytes]]:
    """The inputs by target."""
    inputs: dict[str, list[bytes]] = {}
    with tarfile.open(ARCHIVE) as archive:
        for member in archive:
            target = member.name.split("/")[0]
            inputs.setdefault(target, []).append(archive.extractfile(member).read())
    return inputs


def write(inputs: Mapping[str, list[bytes]]) -> None:
    """Replaces them all. The same inputs make the same file."""
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w", format=tarfile.USTAR_FORMAT) as archive:
        for target in sorted(inputs):
            for number, content in enumerate(sorted(inputs[target])):
                member = tarfile.TarInfo(f"{target}/{number:03}")
                member.size = len(content)
                archive.addfile(member, io.BytesIO(content))
    ARCHIVE.write_bytes(lzma.compress(file.getvalue(), preset=9 | lzma.PRESET_EXTREME))


def folders(target: str, below: Path) -> list[Path]:
    """The folders with all inputs of a target; those of the archive are unpacked below `below`."""
    unpacked = below / target
    unpacked.mkdir(parents=True)
    for number, content in enumerate(read().get(target, [])):
        (unpacked / f"{number:03}").write_bytes(content)
    named = REGRESSIONS / target
    return [unpacked, named] if named.is_dir() else [unpacked]
