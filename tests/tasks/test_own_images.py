"""A user's folder of pictures: labels by subfolder or table, nothing outside the folder, and each fault told."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pytest_adaptive_eval.errors import BankError, ConfigError
from pytest_adaptive_eval.tasks.bank import task_bank
from pytest_adaptive_eval.tasks.distortions import DISTORTIONS
from pytest_adaptive_eval.tasks.drawing import Icon, board
from pytest_adaptive_eval.tasks.own_images import own_images, read_images

Image: Any = pytest.importorskip("PIL.Image", reason="pictures need pillow")


def picture(path: Path, shape: str, seed: int = 0, size: tuple[int, int] = (120, 80)) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    fill, colour = [("solid", "red"), ("striped", "blue"), ("hollow", "green")][seed]
    Image.fromarray(board([Icon(shape, fill, colour)], 1, 120)).resize(size).save(path)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Two pictures of each of three labels."""
    for shape in ("star", "heart", "moon"):
        for seed in range(2):
            picture(tmp_path / "images" / shape / f"{seed}.png", shape, seed)
    return tmp_path / "images"


def table(folder: Path, text: str) -> Path:
    (folder / "labels.csv").write_text(text)
    return folder


def test_subfolders_are_labels(folder: Path) -> None:
    picture(folder / "moon" / "deep" / "2.JPG", "moon", 2)
    (folder / "star" / "notes.txt").write_text("no picture")
    picture(folder / ".cache" / "x.png", "star")
    images = read_images(folder)
    assert [(image.path, image.label) for image in images] == [
        ("heart/0.png", "heart"),
        ("heart/1.png", "heart"),
        ("moon/0.png", "moon"),
        ("moon/1.png", "moon"),
        ("moon/deep/2.JPG", "moon"),
        ("star/0.png", "star"),
        ("star/1.png", "star"),
    ]
    assert len({image.digest for image in images}) == 7


def test_a_table_labels_pictures_wherever_they_lie(tmp_path: Path) -> None:
    picture(tmp_path / "a.png", "star")
    picture(tmp_path / "deep" / "b.webp", "moon")
    images = read_images(table(tmp_path, "file,label\na.png,a star\ndeep/b.webp, half moon \n"))
    assert [(image.path, image.label) for image in images] == [("a.png", "a star"), ("deep/b.webp", "half moon")]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("name,label\n", r"labels\.csv:1: the first row is 'name,label', expected file,label"),
        ("", r"labels\.csv:1: the first row is '', expected file,label"),
        ("file,label\na.png\n", r"labels\.csv:2: the row has 1 columns, expected a file that is named once"),
        ("file,label\na.png,x\na.png,y\n", r"labels\.csv:3: 'a.png' has a row already, expected"),
        ("file,label\na.png,x\n", r"labels\.csv: it has no row for the picture 'b.png': add one"),
        ("file,label\na.png,x\nb.png,y\n../c.png,z\n", r"image '\.\./c\.png' leads out of the bank's folder"),
        ("file,label\na.png,x\nb.png,y\n/c.png,z\n", r"image '/c\.png' leads out of the bank's folder"),
        ("file,label\na.png,x\nb.png,y\nc.png,z\n", r"image 'c\.png' is not in the folder"),
        ("file,label\na.png,x\nb.png,\n", "the picture 'b.png' has the label '': 1 to 60 characters in one line"),
        ('file,label\na.png,x\nb.png,"y\nz"\n', r"the picture 'b.png' has the label 'y\\nz'"),
        (f"file,label\na.png,x\nb.png,{'y' * 61}\n", "the picture 'b.png' has the label 'yyy"),
        ("file,label\na.png,Cat\nb.png,cat\n", "the labels 'Cat' and 'cat' differ in case alone: write one of them"),
        ("file,label\na.png,x\nb.png,x\n", "has one label, 'x': pictures of at least two labels are expected"),
        ('file,label\na.png,"x\n', r"labels\.csv cannot be read as a table in UTF-8: unexpected end of data"),
    ],
)
def test_a_faulty_table_is_told(tmp_path: Path, text: str, message: str) -> None:
    picture(tmp_path / "images" / "a.png", "star")
    picture(tmp_path / "images" / "b.png", "moon")
    picture(tmp_path / "c.png", "moon")
    with pytest.raises(ConfigError, match=message):
        read_images(table(tmp_path / "images", text))


def test_a_picture_without_a_label_is_told(folder: Path) -> None:
    picture(folder / "lone.png", "star", 2)
    with pytest.raises(ConfigError, match=r"the picture 'lone.png' has no label: put it into a subfolder named after"):
        read_images(folder)


def test_a_folder_that_is_none_or_has_no_pictures_is_told(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no is not a folder of pictures: name one that exists"):
        read_images(tmp_path / "no")
    with pytest.raises(ConfigError, match="has no pictures: pictures of at least two labels are expected"):
        read_images(tmp_path)


def test_links_are_refused(folder: Path, tmp_path: Path) -> None:
    picture(tmp_path / "outside" / "x.png", "star", 2)
    link = folder / "star" / "x.png"
    link.symlink_to(tmp_path / "outside" / "x.png")
    with pytest.raises(ConfigError, match=r"image 'star/x.png' goes through the symbolic link"):
        read_images(folder)
    link.unlink()
    (folder / "sun").symlink_to(tmp_path / "outside")
    with pytest.raises(ConfigError, match="the folder 'sun' is a symbolic link: put the pictures themselves there"):
        read_images(folder)
    (folder / "sun").unlink()
    (tmp_path / "t.csv").write_text("file,label\n")
    (folder / "labels.csv").symlink_to(tmp_path / "t.csv")
    with pytest.raises(ConfigError, match=r"labels\.csv is a symbolic link: put the table itself there"):
        read_images(folder)


def test_a_file_that_is_no_picture_is_told(folder: Path) -> None:
    (folder / "star" / "bad.png").write_text("text")
    with pytest.raises(ConfigError, match=r"image 'star/bad.png' cannot be read as PNG, JPEG, WEBP"):
        read_images(folder)


def test_one_picture_with_two_labels_is_told(folder: Path) -> None:
    (folder / "moon" / "copy.png").write_bytes((folder / "star" / "0.png").read_bytes())
    with pytest.raises(ConfigError, match=r"'moon/copy.png' and 'star/0.png' are the same picture with the labels"):
        read_images(folder)


def test_questions_show_the_picture_of_the_answer(folder: Path) -> None:
    family = own_images(read_images(folder))
    assert (family.name, family.levels, family.guess_floor) == ("own_images", 10, 1 / 3)
    answers: Counter[str] = Counter()
    for seed in range(30):
        question = family.question(1, seed)
        answers[question.answer] += 1
        assert sorted(question.choices) == ["heart", "moon", "star"]
        options = "".join(f"{letter}. {choice}\n" for letter, choice in zip("ABC", question.choices, strict=True))
        assert question.prompt == f"Which of these does the picture show?\n{options}End with `Answer: <letter>`."
        shown = family.picture(1, seed)
        assert shown.shape == (298, 448, 3)
        originals = [
            np.asarray(Image.open(path).resize((448, 298))) for path in sorted((folder / question.answer).iterdir())
        ]
        assert any(np.array_equal(shown, original) for original in originals)
    assert min(answers.values()) >= 4


def test_answers_are_graded_by_letter_and_word(folder: Path) -> None:
    item = own_images(read_images(folder)).item(2, 3)
    letter = "ABC"[item.choices.index(item.answer)]
    wrong = next(choice for choice in item.choices if choice != item.answer)
    assert [item.grade(text) for text in (letter, f"Answer: {letter}", item.answer, wrong)] == [1.0, 1.0, 1.0, 0.0]
    assert item.prompt.startswith("Which of these does the picture show? It may be damaged.\n")


def test_one_distortion_or_all(folder: Path) -> None:
    images = read_images(folder)
    family = own_images(images, "blurred", distortion="blur", question="What is it?")
    assert family.knob == DISTORTIONS["blur"].knob
    question = family.question(4, 1)
    assert question.prompt.startswith("What is it? It may be damaged.")
    clean = own_images(images, "clean").picture(1, 0)
    assert not np.array_equal(DISTORTIONS["blur"](random.Random(0), clean, 4), clean)
    with pytest.raises(ConfigError, match="distortion 'blurr' is not known; did you mean 'blur'"):
        own_images(images, distortion="blurr")
    with pytest.raises(ConfigError, match="own_images: pictures of at least two labels are expected, found 1"):
        own_images(images[:2])


def test_at_most_ten_labels_are_options(tmp_path: Path) -> None:
    for n in range(13):
        picture(tmp_path / f"thing {n}" / "a.png", "star", 0, (100 + n, 100))
    family = own_images(read_images(tmp_path))
    assert family.guess_floor == 0.1
    seen = Counter(choice for seed in range(60) for choice in family.question(1, seed).choices)
    assert len(seen) == 13
    for seed in range(20):
        question = family.question(1, seed)
        assert len(set(question.choices)) == 10
        assert question.answer in question.choices


def test_changed_pictures_make_other_items(folder: Path, tmp_path: Path) -> None:
    before = task_bank(own_images(read_images(folder)), queries=2, levels=1, pictures=tmp_path / "drawn")
    for shape in ("star", "heart", "moon"):
        for seed in range(2):
            picture(folder / shape / f"{seed}.png", shape, seed, (90, 100))
    after = task_bank(own_images(read_images(folder)), queries=2, levels=1, pictures=tmp_path / "drawn")
    assert before.content_hash != after.content_hash
    with Image.open(after.items[0].image_paths[0]) as drawn:
        assert drawn.size == (403, 448)


def test_a_picture_that_is_gone_when_it_is_asked_is_told(folder: Path) -> None:
    family = own_images(read_images(folder))
    for path in folder.rglob("*.png"):
        path.unlink()
    with pytest.raises(BankError, match="is not in the folder"):
        family.picture(1, 0)
