"""What a command raises when the user got something wrong."""

from mpress import _core, cuda_bench


class UserError(Exception):
    """One sentence that names the culprit and says what was expected; exit status 2."""


def checked_spec(option: str, spec: str) -> str:
    """The canonical text of a codec spec given for `option`."""
    try:
        return _core.describe(spec)["text"]
    except ValueError as error:
        raise UserError(f"{option}: {error}") from None


def checked_bytes(option: str, text: str) -> int:
    """Bytes, with an optional suffix K, M or G."""
    try:
        return _core.parse_bytes(text)
    except (TypeError, ValueError) as error:
        raise UserError(f"{option} {error}") from None


def checked_device(name: str) -> bool:
    """Whether `--device` asks for a GPU, which there is."""
    if name not in ("cpu", "cuda"):
        raise UserError(f"--device {name!r}: expected cpu or cuda")
    if name == "cuda" and not cuda_bench.available():
        built = _core.build_info()["cuda"]
        why = "no GPU was found" if built else "this mpress was built without CUDA"
        raise UserError(f"--device cuda: {why}")
    return name == "cuda"
