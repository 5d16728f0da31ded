"""Image sets read from files of the published format that tests make, and what damage is refused."""

from __future__ import annotations

import io
import tarfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from datafiles import needs_file
from loaded import counts, load
from PIL import Image

from vflens.datasets._images import pixels
from vflens.datasets.criteo import hashed, logarithms
from vflens.datasets.wine import Wine
from vflens.errors import DataError
from vflens.experiments.results.record import read_runs
from vflens.experiments.results.verdict import verdict
from vflens.experiments.run.check import check
from vflens.experiments.run.loading import load_experiment
from vflens.experiments.run.run import run
from vflens.testing.datasets import assert_sound
from vflens.types import Array

NAMES = [f"class_{i:02d}" for i in range(100)]
VIEWS = 12


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("VFLENS_DATA", str(tmp_path))
    return tmp_path


def _records(each: int, seed: int) -> Array:
    """``each`` records of every class, in a drawn order."""
    rng = np.random.default_rng(seed)
    fine = rng.permutation(np.repeat(np.arange(100), each)).astype(np.uint8)
    images = rng.integers(0, 256, (len(fine), 3072), np.uint8)
    return np.column_stack([fine // 5, fine, images])


def _archive(folder: Path, files: dict[str, bytes]) -> None:
    with tarfile.open(folder / "cifar-100-binary.tar.gz", "w:gz") as archive:
        for name, content in files.items():
            member = tarfile.TarInfo(f"cifar-100-binary/{name}")
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))


def _published() -> dict[str, bytes]:
    return {
        "train.bin": _records(2, 0).tobytes(),
        "test.bin": _records(1, 1).tobytes(),
        "fine_label_names.txt": "\n".join(NAMES).encode() + b"\n",
    }


def test_cifar_100_is_read_from_the_published_archive(data: Path) -> None:
    _archive(data, _published())
    table = load("cifar100")
    assert_sound(table)
    assert table.class_names == tuple(NAMES)
    assert (counts(table, 0), counts(table, 1)) == (dict.fromkeys(NAMES, 2), dict.fromkeys(NAMES, 1))
    record = _records(2, 0)[7]
    assert table.labels is not None
    assert table.labels[7] == record[1]
    for j in (0, 1, 2, 3, 1700, 3071):
        place = table.columns[j].pixel
        assert place is not None
        assert table.features[7, j] == record[2 + np.dot(place, (32, 1, 1024))]


@pytest.mark.parametrize(
    ("damage", "sentence"),
    [
        (lambda f: f | {"train.bin": f["train.bin"][:-1]}, "holds train.bin of 614799 bytes, not a multiple"),
        (lambda f: f | {"test.bin": b""}, "holds test.bin of 0 bytes"),
        (lambda f: f | {"test.bin": f["test.bin"][3074:]}, "holds test.bin with 0 to 1 images of a class"),
        (
            lambda f: f | {"test.bin": b"\0\x64" + f["test.bin"][2:]},
            "holds test.bin with 0 to 1 images of a class",
        ),
        (lambda f: f | {"fine_label_names.txt": b"a\nb\n"}, "names 2 classes, not 100"),
        (lambda f: {"train.bin": f["train.bin"]}, "cannot be unpacked"),
    ],
)
def test_a_damaged_archive_is_refused(
    data: Path, damage: Callable[[dict[str, bytes]], dict[str, bytes]], sentence: str
) -> None:
    _archive(data, damage(_published()))
    with pytest.raises(DataError, match=rf"cifar-100-binary.tar.gz' {sentence}.*: replace it by the publ"):
        load("cifar100")


@pytest.mark.parametrize("content", [b"", b"no archive", None])
def test_a_torn_archive_is_refused(data: Path, content: bytes | None) -> None:
    _archive(data, _published())
    file = data / "cifar-100-binary.tar.gz"
    file.write_bytes(file.read_bytes()[:-1000] if content is None else content)
    with pytest.raises(DataError, match=r"cannot (be unpacked|read) .*: (replace it|put the file)"):
        load("cifar100")


def test_an_absent_archive_names_its_place(data: Path) -> None:
    with pytest.raises(DataError, match=r"cannot read '.*tar\.gz' \(No such file .*\): put the file where"):
        load("cifar100")
    with pytest.raises(DataError, match=r"cannot read '.*12x' \(No such file .*\): put the file where"):
        load("modelnet")


def _views(data: Path, pattern: str = "{}_{:03d}.png") -> Path:
    """Two classes of three objects each, the last a test one; view v of object i is all of brightness
    10 i + v.
    """
    folder = data / "modelnet40_images_new_12x"
    for k, name in enumerate(("chair", "airplane")):
        for i in range(3):
            part = folder / name / ("test" if i == 2 else "train")
            part.mkdir(parents=True, exist_ok=True)
            for view in range(1, VIEWS + 1):
                picture = Image.new("RGB", (32, 32), (100 * k + 10 * i + view,) * 3)
                picture.save(part / pattern.format(f"{name}_{i:04d}", view))
    return folder


@pytest.mark.parametrize("pattern", ["{}_{:03d}.png", "{}.obj.shaded_v{:03d}.png", "{}.{}.png"])
def test_views_of_an_object_are_channels_of_its_image(data: Path, pattern: str) -> None:
    _views(data, pattern)
    table = load("modelnet", side=8)
    assert_sound(table)
    assert table.features.shape == (6, 8 * 8 * VIEWS)
    assert table.class_names == ("airplane", "chair")
    assert (counts(table, 0), counts(table, 1)) == ({"airplane": 2, "chair": 2}, {"airplane": 1, "chair": 1})
    assert [c.pixel for c in table.columns[:13]] == [*((0, 0, v) for v in range(VIEWS)), (0, 1, 0)]
    for row, brightness in enumerate((100, 110, 0, 10, 120, 20)):  # in the order of class and object
        expected = np.tile(brightness + np.arange(1, VIEWS + 1), 64)
        np.testing.assert_array_equal(table.features[row], expected)


def test_a_view_is_reduced_by_the_mean_of_its_pixels(data: Path) -> None:
    folder = _views(data)
    board = np.arange(64).reshape(8, 8).repeat(2, axis=0).repeat(2, axis=1) + np.tile(
        [[0, 2], [4, 6]], (8, 8)
    )
    Image.fromarray(board.astype(np.uint8)).save(folder / "airplane" / "train" / "airplane_0000_001.png")
    table = load("modelnet", side=8)
    np.testing.assert_array_equal(table.features[0, ::VIEWS], 3 + np.arange(64))


def test_damaged_views_are_refused(data: Path) -> None:
    folder = _views(data)
    view = folder / "chair" / "train" / "chair_0001_007.png"
    view.write_bytes(view.read_bytes()[:60])
    with pytest.raises(DataError, match=r"chair_0001_007.png' is no readable image: copy it anew"):
        load("modelnet")
    view.unlink()
    with pytest.raises(DataError, match="holds 11 views of 'chair_0001', not 12: unpack it anew"):
        load("modelnet")
    _views(data)
    for file in (folder / "chair" / "test").iterdir():
        file.unlink()
    with pytest.raises(DataError, match=r"chair/test' holds no OBJECT_VIEW.png: unpack the views"):
        load("modelnet")


def test_joined_image_files_are_decoded_one_by_one() -> None:
    images = np.random.default_rng(0).integers(0, 256, (3, 32, 32, 3), np.uint8)
    files = []
    for image in images:
        stream = io.BytesIO()
        Image.fromarray(image).save(stream, "PNG")
        files.append(np.frombuffer(stream.getvalue(), np.uint8))
    offsets = np.cumsum([0, *map(len, files)])
    np.testing.assert_array_equal(pixels(np.concatenate(files), offsets), images.reshape(3, -1))


def test_counts_and_hashes_become_numbers() -> None:
    logs = logarithms(np.array(["", "0", "1", "-3", "999"]))
    np.testing.assert_allclose(logs, [0, 0, np.log(2), -np.log(4), np.log(1000)], rtol=1e-15)
    found = hashed(np.array(["68fd1e64", "", "0000000f"]), 8)
    assert found.tolist() == [[0, 0, 0, 0, 1, 0, 0, 0], [0] * 8, [0, 0, 0, 0, 0, 0, 0, 1]]


@pytest.mark.facts
@needs_file("cifar10_jpeg.npz")
def test_the_jpeg_copy_is_near_the_lossless_images() -> None:
    """Images of a class stand in the original order, so the first lossless ones are its first."""
    copy, exact = load("cifar10"), load("cifar10_lossless")
    assert copy.labels is not None
    assert exact.labels is not None
    assert copy.class_names == exact.class_names
    errors = []
    for k in range(10):
        mine = exact.features[exact.labels == k]
        theirs = copy.features[copy.labels == k][: len(mine)]
        errors.extend(np.sqrt(((mine.astype(float) - theirs) ** 2).mean(axis=1)))
    assert np.median(errors) == pytest.approx(7.6, abs=0.1)


@pytest.mark.facts
@needs_file("criteo_train_head10000.txt.gz")
def test_the_first_row_of_criteo() -> None:
    table = load("criteo")
    first = dict(zip((c.name for c in table.columns), table.features[0], strict=True))
    assert [first[f"I{i}"] for i in (1, 3, 4, 12)] == pytest.approx([np.log(2), np.log(6), 0, 0])
    assert first["C1=4"] == 1.0  # 68fd1e64
    assert table.features[:, 13:].sum(axis=1).max() <= 26


@pytest.mark.facts
@needs_file("criteo_train_head10000.txt.gz")
def test_clicks_are_drawn_to_a_ratio_and_no_other_row_is() -> None:
    """The rows that stay are the source's, in its order, and the clicks are no head of it."""
    whole, drawn = load("criteo"), load("criteo", ratio=16)
    assert whole.labels is not None
    assert drawn.labels is not None
    assert np.bincount(drawn.labels).tolist() == [7818, 7818 // 16]
    places = np.flatnonzero(np.isin(whole.ids, drawn.ids))
    np.testing.assert_array_equal(drawn.features, whole.features[places])
    np.testing.assert_array_equal(drawn.labels, whole.labels[places])
    kept = places[whole.labels[places] == 1]
    assert np.abs(np.quantile(kept, [0.25, 0.5, 0.75]) / len(whole.ids) - [0.25, 0.5, 0.75]).max() < 0.1


def test_a_check_and_a_report_say_where_data_differ_from_their_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "experiment.toml"
    split, training = "[split]\nkind = 'fraction'\nfraction = 0.5\n", "[training]\nepochs = 1\n"
    file.write_text(f"name = 'x'\n[data]\nname = 'wine'\n{split}{training}")
    assert "data" not in check(file)
    monkeypatch.setattr(Wine, "caveat", "Wine, watered down")
    assert check(file)["data"] == "Wine, watered down"
    done = run(load_experiment(file).model_copy(update={"out": tmp_path / "runs"}), in_process=True)
    text = str(verdict(read_runs(done.scenarios)))
    assert text.endswith("Data: Wine, watered down.")
    assert text.count("watered") == 1  # both parties state it
    assert '<p class="lead">Data: Wine, watered down.</p>' in done.report.read_text(encoding="utf-8")
