"""Makes runtime/data/digits from the copy of the dataset that scikit-learn carries.

    pip download --no-deps --dest /tmp/wheel scikit-learn
    python scripts/digits.py /tmp/wheel/scikit_learn-*.whl            # writes the files
    python scripts/digits.py --check /tmp/wheel/scikit_learn-*.whl    # compares what is there

Needs no more than Python itself. See runtime/data/digits/README.md for the origin and the licence of the data.
"""

import argparse
import gzip
import hashlib
import pathlib
import struct
import zipfile

FOLDER = pathlib.Path(__file__).resolve().parent.parent / "runtime" / "data" / "digits"
MEMBER = "sklearn/datasets/data/digits.csv.gz"
SHA256 = "09f66e6debdee2cd2b5ae59e0d6abbb73fc2b0e0185d2e1957e9ebb51e23aa22"


def idx(shape, values):
    """An IDX file of bytes, as MNIST's are."""
    return struct.pack(f">BBBB{len(shape)}I", 0, 0, 8, len(shape), *shape) + bytes(values)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("wheel", type=pathlib.Path)
    parser.add_argument("--check", action="store_true", help="write nothing, compare")
    arguments = parser.parse_args()

    packed = zipfile.ZipFile(arguments.wheel).read(MEMBER)
    if hashlib.sha256(packed).hexdigest() != SHA256:
        parser.exit(1, f"{MEMBER} in {arguments.wheel} is not the file that this script knows\n")
    rows = [[int(cell) for cell in line.split(",")] for line in gzip.decompress(packed).decode().splitlines()]
    assert len(rows) == 1797 and all(len(row) == 65 and max(row[:64]) <= 16 and row[64] <= 9 for row in rows)

    # From 0..16 to the full range of a byte, so that it can be treated as any other picture.
    pixels = [(value * 255 + 8) // 16 for row in rows for value in row[:64]]
    files = {
        "images-idx3-ubyte.gz": idx((len(rows), 8, 8), pixels),
        "labels-idx1-ubyte.gz": idx((len(rows),), [row[64] for row in rows]),
    }
    for name, content in files.items():
        path = FOLDER / name
        if not arguments.check:
            path.parent.mkdir(parents=True, exist_ok=True)
            # No time of packing, so that the same data make the same file.
            path.write_bytes(gzip.compress(content, 9, mtime=0))
        elif gzip.decompress(path.read_bytes()) != content:
            parser.exit(1, f"{path} differs from what {arguments.wheel} makes\n")


if __name__ == "__main__":
    main()
