"""MNIST: handwritten digits, 28 x 28 pixels scaled to 0 to 1, 60,000 for training and 10,000 for evaluation.

The four files are not included. They are read from `folder`, else from the folder in the environment variable
LOCKSTEP_MNIST, else from ./data/mnist, gzipped or not. With only the two t10k files, 9,000 of the 10,000 test images
are used for training and 1,000 are held out.
Source: LeCun, Cortes & Burges, 1998, http://yann.lecun.com/exdb/mnist; mirrored at MIRROR.
"""

import gzip
import math
import os
import zlib
from pathlib import Path

import numpy as np

from knobs import knob
from workloads import models
from workloads.supervised import Supervised

MIRROR = "https://ossci-datasets.s3.amazonaws.com/mnist/"
IMAGES, LABELS = 0x00000803, 0x00000801  # unsigned bytes in 3 dimensions and in 1 dimension
HELD_OUT = 1000  # of the 10,000 test images, if these are the only ones


class Settings(models.ModelKnobs):
    """The settings: the folder of the files, and the model that classifies the digits."""

    folder: str = knob(
        "", "folder with the files; empty is $LOCKSTEP_MNIST, or data/mnist", local=True, max_length=4096
    )

    @property
    def numbers(self) -> int:
        """The total number of pixels of all images."""
        return 70_000 * 28 * 28


def build(settings: Settings, dtype=np.float32) -> Supervised:
    """Return the workload. Raise ValueError if a file is missing or damaged."""
    folder = Path(settings.folder or os.environ.get("LOCKSTEP_MNIST") or Path("data", "mnist")).expanduser()
    x, target = pair(folder, "t10k")
    if find(folder, "train-images-idx3-ubyte") or find(folder, "train-labels-idx1-ubyte"):
        train, test, notes = pair(folder, "train"), (x, target), ()
    else:
        cut = max(1, len(x) - HELD_OUT)
        train, test = (x[:cut], target[:cut]), (x[cut:], target[cut:])
        notes = (f"mnist: only the t10k files were found; trained on {cut:,} of their images, evaluated on the rest.",)
    model = models.build(settings, (1, *x.shape[1:]), 10, dtype)
    scaled = [(np.divide(images, 255, dtype=dtype), labels) for images, labels in (train, test)]
    return Supervised("mnist", model, *scaled, notes=notes, image=x.shape[1:])


def pair(folder: Path, part: str) -> tuple[np.ndarray, np.ndarray]:
    """Return the images, (n, 28, 28) of bytes, and labels, (n,), of one part of the data: "train" or "t10k"."""
    images = read(folder, f"{part}-images-idx3-ubyte", IMAGES)
    labels = read(folder, f"{part}-labels-idx1-ubyte", LABELS)
    name = f"{part}-labels-idx1-ubyte in {folder}"
    if images.shape[1:] != (28, 28):
        size = "x".join(map(str, images.shape[1:]))
        raise ValueError(f"mnist: {part}-images-idx3-ubyte in {folder} has images of {size} pixels instead of 28x28.")
    if len(images) != len(labels):
        raise ValueError(f"mnist: {name} has {len(labels)} labels for {len(images)} images; get it from {MIRROR}")
    if labels.max(initial=0) > 9:
        raise ValueError(f"mnist: {name} has a label {labels.max()}, which is not a digit; get it from {MIRROR}")
    return images, labels.astype(np.int64)


def find(folder: Path, name: str) -> Path | None:
    """Return the path of the file, gzipped or not, or None if it does not exist."""
    return next((path for path in (folder / name, folder / f"{name}.gz") if path.is_file()), None)


def read(folder: Path, name: str, magic: int) -> np.ndarray:
    """Return the bytes in an IDX file as an array.

    Raise ValueError if the file is missing or is not an IDX file. The message says what was found instead.
    """
    path = find(folder, name)
    if path is None:
        found = "the folder does not exist"
        if folder.is_dir():
            others = sorted(entry.name for entry in folder.iterdir())[:5]
            found = f"found {', '.join(others)}" if others else "the folder is empty"
        raise ValueError(
            f"mnist: there is no {name} or {name}.gz in {folder} ({found}); "
            f"get it from {MIRROR}{name}.gz, or set folder or LOCKSTEP_MNIST to where it is."
        )
    wrong, fetch = f"mnist: {path} ", f"; download it again from {MIRROR}{name}.gz"
    try:
        content = path.read_bytes()
        if content[:2] == b"\x1f\x8b":
            content = gzip.decompress(content)
    except (OSError, EOFError, zlib.error) as error:  # OSError: not readable, or gzip's own BadGzipFile
        raise ValueError(f"{wrong}cannot be read: {error}{fetch}") from None
    if int.from_bytes(content[:4], "big") != magic:
        raise ValueError(f"{wrong}begins with {content[:4].hex(' ') or 'nothing'}, not {magic:08x} as IDX does{fetch}")
    dimensions = magic & 0xFF
    header = 4 + 4 * dimensions
    shape = [int.from_bytes(content[at : at + 4], "big") for at in range(4, header, 4)]
    if len(content) != header + math.prod(shape) or not all(shape):
        announced = " x ".join(map(str, shape))
        raise ValueError(f"{wrong}has {max(0, len(content) - header)} bytes but announces {announced}{fetch}")
    return np.frombuffer(content, np.uint8, offset=header).reshape(shape)
