"""A party's own folder of images as its table."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from vflens.errors import ConfigError, DataError
from vflens.experiments.run.check import check
from vflens.tables.description import PartyFile
from vflens.tables.files import read_party_table, write_party_table

GREY = np.random.default_rng(1).integers(0, 256, (6, 4, 3), np.uint8)  # six images, four rows, three columns
RGB = np.random.default_rng(2).integers(0, 256, (2, 4, 3, 3), np.uint8)


def save(file: Path, pixels: Any) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(pixels).save(file)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Six images of two classes."""
    for i, image in enumerate(GREY):
        save(tmp_path / "photos" / ("cat" if i % 2 else "dog") / f"{i}.png", image)
    (tmp_path / "photos" / "cat" / ".hidden").write_text("no image", encoding="utf-8")
    return tmp_path / "photos"


def spec(**more: Any) -> PartyFile:
    return PartyFile.model_validate({"file": "photos", "label_column": "class", **more})


def test_sub_folders_are_classes_and_pixels_are_columns(folder: Path) -> None:
    table = read_party_table(spec(), folder.parent)
    assert table.class_names == ("cat", "dog")
    assert table.ids.tolist() == [
        b"cat/1.png",
        b"cat/3.png",
        b"cat/5.png",
        b"dog/0.png",
        b"dog/2.png",
        b"dog/4.png",
    ]
    assert table.labels is not None
    assert table.labels.tolist() == [0, 0, 0, 1, 1, 1]
    assert np.array_equal(table.features.reshape(6, 4, 3), GREY[[1, 3, 5, 0, 2, 4]])
    assert table.features.dtype == np.uint8
    assert [c.pixel for c in table.columns] == [(r, c) for r in range(4) for c in range(3)]
    assert {(c.low, c.high) for c in table.columns} == {(0.0, 255.0)}


def test_it_is_the_table_that_its_copy_gives(folder: Path, tmp_path: Path) -> None:
    table = read_party_table(spec(), folder.parent)
    (tmp_path / "copy").mkdir()
    copy = read_party_table(write_party_table(table, tmp_path / "copy"), tmp_path / "copy")
    assert copy.digest().tobytes() == table.digest().tobytes()
    assert copy.columns == table.columns


def test_colours_and_declared_classes_of_which_a_party_has_one(tmp_path: Path) -> None:
    for i, image in enumerate(RGB):
        save(tmp_path / "photos/dog" / f"{i}.png", image)
    table = read_party_table(spec(classes=["dog", "cat"]), tmp_path)
    assert table.class_names == ("dog", "cat")
    assert np.array_equal(table.features.reshape(2, 4, 3, 3), RGB)
    assert table.columns[5].pixel == (0, 1, 2)


def test_without_labels_the_images_lie_in_the_folder(tmp_path: Path) -> None:
    save(tmp_path / "photos/b.png", GREY[0])
    save(tmp_path / "photos/a.png", GREY[1])
    table = read_party_table(spec(label_column=None), tmp_path)
    assert (table.ids.tolist(), table.labels) == ([b"a.png", b"b.png"], None)


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"bounds": {"x": [0, 1]}}, "bounds has no meaning in a folder of images"),
        ({"split_column": "split"}, "split_column has no meaning in a folder of images"),
        ({"label_column": None}, "it holds the folder 'cat': set label_column"),
        ({"classes": ["cat", "cow"]}, "folder 'dog' is none of the classes"),
        ({"classes": ["dog"]}, "folder 'cat' is none of the classes"),
    ],
)
def test_settings_that_do_not_fit_are_refused(folder: Path, settings: Any, sentence: str) -> None:
    with pytest.raises(DataError, match=sentence):
        read_party_table(spec(**settings), folder.parent)


def test_files_that_do_not_fit_are_refused(folder: Path) -> None:
    odd = folder / "dog"
    for name, content, sentence in [
        ("notes.txt", b"dogs", r"a file is no image: remove it, or save it as one of \.bmp"),
        ("broken.png", b"no png", "image 7, by class and name, is not readable: copy"),
        (
            "cut.png",
            (odd / "0.png").read_bytes()[:60],
            "image 7, by class and name, is not readable: copy it anew",
        ),
        ("bell\a.png", (odd / "0.png").read_bytes(), "holds what cannot be printed"),
    ]:
        (odd / name).write_bytes(content)
        with pytest.raises(DataError, match=sentence) as refusal:
            read_party_table(spec(), folder.parent)
        assert name not in str(refusal.value)
        assert len(refusal.value.shown) == 1
        assert repr(name)[1:-1] in refusal.value.shown[0]
        (odd / name).unlink()
    for name, pixels, sentence in [
        ("wide.png", np.zeros((4, 5), np.uint8), r"has 5 by 4 pixels in mode L, the first image 3 by 4 in L"),
        ("red.png", RGB[0], r"has 3 by 4 pixels in mode RGB, the first image 3 by 4 in L"),
        ("clear.png", np.zeros((4, 3, 4), np.uint8), "in mode RGBA: save it with grey or RGB"),
        ("huge.png", np.zeros((300, 300), np.uint8), "at most 65,536 are read: shrink it"),
    ]:
        save(odd / name, pixels)
        with pytest.raises(DataError, match=sentence):
            read_party_table(spec(), folder.parent)
        (odd / name).unlink()
    save(folder / "loose.png", GREY[0])
    with pytest.raises(DataError, match="a file lies beside the folders of classes: move it"):
        read_party_table(spec(), folder.parent)


def test_an_empty_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "photos").mkdir()
    with pytest.raises(DataError, match="the folder holds no image: it needs some"):
        read_party_table(spec(label_column=None), tmp_path)
    with pytest.raises(DataError, match="labels need two at least, a folder each"):
        read_party_table(spec(), tmp_path)


def test_clients_with_folders_of_images_fit(tmp_path: Path) -> None:
    for client in ("a", "b"):
        for i, image in enumerate(np.random.default_rng(3).integers(0, 256, (20, 6, 6), np.uint8)):
            save(tmp_path / client / ("cat" if i % 2 else "dog") / f"{i}.png", image)
    files = "\n".join(f'[files.{c}]\nfile = "{c}"\nlabel_column = "class"\n' for c in ("a", "b"))
    (tmp_path / "photos.toml").write_text(
        f'name = "photos"\n{files}\n[parties]\nclients = ["a", "b"]\n[horizontal]\nrounds = 2\n'
        '[model]\narchitecture = "cnn"\n',
        encoding="utf-8",
    )
    assert check(tmp_path / "photos.toml")["rows"] == "32 to train, 8 to predict at 2 clients"
    (tmp_path / "b" / "dog").rename(tmp_path / "b" / "cow")
    with pytest.raises(ConfigError, match=r"declare the same data\.classes at every client"):
        check(tmp_path / "photos.toml")
