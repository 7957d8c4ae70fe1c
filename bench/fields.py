"""Writes a test field as raw little-endian values: python bench/fields.py NAME SHAPE OUT."""

import argparse
import sys

from mpress import fields


def extents(text):
    try:
        return tuple(int(n) for n in text.split("x"))
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not a shape such as 256x256x256") from None


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("name", choices=fields.NAMES)
    parser.add_argument("shape", type=extents, help="extents joined by x, such as 256x256x256")
    parser.add_argument("out", help="file to write")
    parser.add_argument("--dtype", choices=("f32", "f64"), default="f32")
    parser.add_argument("--seed", type=int, help="of turb and rand")
    options = parser.parse_args()
    try:
        field = fields.make(options.name, options.shape, options.dtype, options.seed)
        field.astype(field.dtype.newbyteorder("<"), copy=False).tofile(options.out)
    except (ValueError, OSError) as error:
        sys.exit(f"fields: {error}")


if __name__ == "__main__":
    main()
