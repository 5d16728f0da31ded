"""``vflens audit --serve``: an audit without a terminal, by keyboard, for one browser of this machine."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from axe import serious
from browser import chromium, page
from commandline import Refused, refused, vflens
from livepage import addressed
from playwright.sync_api import Page, expect

from vflens.errors import ConfigError, DataError, VflensError
from vflens.experiments.watch import own_audit_app
from vflens.experiments.watch.access import Access
from vflens.experiments.watch.own_audit import OwnAudit

_FIXTURES = (chromium, page, refused, vflens)  # used by name
MINUTES = 240_000  # milliseconds that an audit may take on a loaded machine
FORM = {"id_column": "id", "classes": 2, "known": 10, "training": "clear", "missing": "refuse"}


def table(folder: Path, name: str = "mine.csv") -> Path:
    """60 rows: an age, a job in words, a number that counts the rows."""
    lines = ["id,age,job,count"]
    lines += [f"r{i},{20 + i * 7 % 50},{('cook', 'clerk', 'nurse')[i % 3]},{i}" for i in range(60)]
    (folder / name).write_text("\n".join(lines) + "\n")
    return folder / name


@contextmanager
def serving(*more: str) -> Iterator[str]:
    """The address of a page; its process is ended by SIGTERM."""
    with addressed("audit", "--serve", "--json", *more) as (_, address):
        yield address


def tab_to(page: Page, name: str) -> None:
    """Press Tab until what is called ``name`` has the focus."""
    for _ in range(40):
        page.keyboard.press("Tab")
        focused = page.evaluate(
            "(e => e.ariaLabel ?? [...(e.labels ?? [])].map(l => l.textContent).join(' ') + e.textContent)"
            "(document.activeElement)"
        )
        if name in focused:
            return
    raise AssertionError(f"Tab does not lead to {name}")


def refuse_at_its_field(page: Page) -> None:
    """A wrong threshold is refused where it was typed, until it is right."""
    box = page.get_by_role("textbox", name="Thresholds")
    tab_to(page, "Thresholds")
    page.keyboard.type("age within 5")
    tab_to(page, "Audit my columns")
    page.keyboard.press("Enter")
    expect(box).to_be_focused()
    text = page.locator("fieldset", has=box).get_by_role("alert")
    expect(text).to_have_text(
        "threshold 'age within 5' is no threshold: give COLUMN within NUMBER > SHARE %, such as 'income "
        "within 5 > 10 %'"
    )
    expect(page.get_by_role("alert")).to_have_count(1)
    assert serious(page) == []
    page.keyboard.press("ControlOrMeta+End")
    page.keyboard.type(" > 10 %")


@pytest.mark.facts
def test_an_audit_by_keyboard(page: Page, tmp_path: Path) -> None:
    """From the choice of a file to the page that stays, without a mouse; no serious violation for axe."""
    file = table(tmp_path)
    with serving() as address:
        page.goto(address)
        assert serious(page) == []
        tab_to(page, "Your table")
        with page.expect_file_chooser() as chooser:
            page.keyboard.press("Enter")
        chooser.value.set_files(file)
        expect(page.get_by_role("checkbox", name="share age")).to_be_checked()
        expect(page.get_by_role("combobox", name="job holds")).to_have_value("one_hot")
        expect(page.get_by_role("checkbox", name="share count")).not_to_be_checked()  # it names rows
        assert serious(page) == []
        page.set_viewport_size({"width": 390, "height": 844})
        assert page.evaluate("document.documentElement.scrollWidth") == 390
        tab_to(page, "Rows of yours")
        page.keyboard.press("ControlOrMeta+a")
        page.keyboard.type("10")
        refuse_at_its_field(page)
        tab_to(page, "Audit my columns")
        page.keyboard.press("Enter")
        expect(page.get_by_role("progressbar")).to_be_visible()
        decision = page.get_by_role("heading", level=2)
        expect(decision).to_contain_text("oin", timeout=MINUTES)
        expect(decision).to_be_focused()
        (outcome,) = page.get_by_role("listitem").all_text_contents()
        assert outcome.startswith("age within 5 > 10 %, the audit: broken, clear_")
        assert serious(page) == []
        tab_to(page, "The whole page")
        with page.expect_download() as downloaded:
            page.keyboard.press("Enter")
        kept = Path(downloaded.value.path()).read_text(encoding="utf-8")
        assert "VFLens audit · mine.csv" in kept
        assert (decision.text_content() or "nothing") in kept
        with page.expect_download() as downloaded:
            tab_to(page, "a page for your data protection officer")
            page.keyboard.press("Enter")
        document = Path(downloaded.value.path()).read_text(encoding="utf-8")
        assert "Data protection impact assessment" in document
        assert "asked" in document or "not declared" in document
        with page.expect_download() as downloaded:
            tab_to(page, "the most exposed rows")
            page.keyboard.press("Enter")
        assert json.loads(Path(downloaded.value.path()).read_text(encoding="utf-8"))


def test_only_its_own_page_sends(tmp_path: Path) -> None:
    with serving() as address, httpx.Client(timeout=60) as client:
        opened = client.get(address, follow_redirects=True)
        where, own = str(opened.url), {"Origin": address.split("/?")[0]}
        assert "form-action 'none'" in opened.headers["Content-Security-Policy"]
        send = f"{where}table?name=mine.csv"
        for origin in ({}, {"Origin": "http://evil.example"}, {"Origin": "null"}):
            assert client.post(send, content=b"id,a\n", headers=origin).status_code == 403
        stranger = httpx.post(send, content=b"id,a\n", headers=own)
        assert stranger.status_code == 403
        rebound = client.post(
            send, content=b"id,a\n", headers={"Host": "evil.example", "Origin": "http://evil.example"}
        )
        assert rebound.status_code == 400
        assert client.put(send, content=b"x", headers=own).status_code == 405
        described = client.post(send, content=table(tmp_path).read_bytes(), headers=own)
        assert described.json()["rows"] == 60
        assert {client.get(f"{where}{page}").status_code for page in ("audit.html", "dpia.html")} == {404}
        refusal = client.post(f"{where}start", content=b"{", headers=own)
        assert refusal.status_code == 422
        assert "load the page again" in refusal.json()["words"]


@pytest.mark.parametrize(
    ("place", "content", "words"),
    [
        ("table?name=a.csv", b"x" * 101, "vflens audit FILE"),
        ("start", b"[" * 100_000, "the form is no JSON"),  # deeper than the parser goes
        ("start", b"[" * 500 + b"]" * 500, "give a table"),
    ],
)
def test_what_is_too_large_or_too_deep_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str, content: bytes, words: str
) -> None:
    monkeypatch.setattr(own_audit_app, "MOST_BYTES", 100)
    access = Access(1, takes=True)
    app = own_audit_app.audit_app(OwnAudit(tmp_path), access)

    async def sent() -> httpx.Response:
        base, transport = "http://127.0.0.1", httpx.ASGITransport(app)
        async with httpx.AsyncClient(transport=transport, base_url=base) as client:
            await client.get(f"/?token={access.token}")
            return await client.post(f"{access.path}{place}", content=content, headers={"Origin": base})

    with ThreadPoolExecutor(1) as thread:  # this one has a loop while Playwright has a browser
        answer = thread.submit(asyncio.run, sent()).result()
    assert answer.status_code == 422
    assert words in answer.json()["words"]


def finished(own: OwnAudit) -> dict[str, Any]:
    """The state at the end."""
    for _ in range(2400):
        if own.state["state"] != "running":
            return own.state
        time.sleep(0.1)
    raise AssertionError("the audit does not end")


def test_what_does_not_fit_is_a_sentence(tmp_path: Path) -> None:
    own = OwnAudit(tmp_path / "own")
    (tmp_path / "own").mkdir()
    with pytest.raises(ConfigError, match="choose a file first"):
        own.start({**FORM, "columns": {"age": ""}})
    with pytest.raises(ConfigError, match=r"is no table: choose a file \.csv"):
        own.place("mine.xlsx")
    place = own.place("../../my own table.csv")
    assert (place.name, place.parent.parent) == ("my_own_table.csv", tmp_path / "own")
    table(place.parent, place.name)
    found = own.take(place)
    assert (found["id_column"], found["rows"], found["names"]) == ("id", 60, ["id", "age", "job", "count"])
    with pytest.raises(ConfigError, match="no column is ticked"):
        own.start({**FORM, "columns": {}})
    with pytest.raises(DataError, match="column 'gone' is missing"):
        own.described("gone")
    own.start({**FORM, "columns": {"job": ""}})
    state = finished(own)
    assert state["state"] == "refused"
    assert "job" in state["words"]
    own.start({**FORM, "columns": {"age": ""}, "known": 5_000})
    assert finished(own)["state"] == "refused"


def test_one_audit_at_a_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    own = OwnAudit(tmp_path)
    own.take(table(tmp_path))
    monkeypatch.setattr(OwnAudit, "_run", lambda *_: None)  # it never ends
    own.start({**FORM, "columns": {"age": ""}})
    assert own.state["state"] == "running"
    for act in (lambda: own.start({**FORM, "columns": {"age": ""}}), lambda: own.place("other.csv")):
        with pytest.raises(ConfigError, match="wait for its end"):
            act()


def test_serve_asks_for_the_table_itself(refused: Refused) -> None:
    assert "leave out 'mine.csv'" in refused(2, "audit", "mine.csv", "--serve")
    assert refused(2, "audit", "--serve", "--classes", "2") == "--serve asks on its page: leave out --classes"
    assert refused(2, "audit", "m.csv", "--port", "80") == "--port is that of the page: give --serve too"
    assert "or --serve for a page" in refused(2, "audit")


def test_another_table_takes_the_place_of_no_running_audit_and_of_no_finished_page(tmp_path: Path) -> None:
    own = OwnAudit(tmp_path)
    first, second = own.place("mine.csv"), own.place("mine.csv")
    assert first != second
    first.write_bytes(table(tmp_path).read_bytes())
    second.write_bytes(first.read_bytes())
    own.take(first)
    for file in (own.page, own.exposed, own.dpia):
        file.write_text("of another table", encoding="utf-8")
    own._tell("models attacked", 1, 2)
    with pytest.raises(ConfigError, match=r"^an audit is running: wait for its end$"):
        own.take(second)
    assert own.state["state"] == "running"
    assert not second.exists()
    second.write_bytes(first.read_bytes())
    own._state = {"state": "finished", "verdict": []}
    own.take(second)
    assert not any(file.exists() for file in (own.page, own.exposed, own.dpia, first))


def test_a_table_read_while_an_audit_begins_takes_no_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A large table takes so long to read that Start comes meanwhile: the check and the change are one."""
    own = OwnAudit(tmp_path)
    own.take(table(tmp_path))
    late = table(own.place("late.csv").parent, "late.csv")
    monkeypatch.setattr(OwnAudit, "_run", lambda *asked: None)  # it does not end
    read = OwnAudit._described

    def slowly(audit: OwnAudit, *asked: Any) -> Any:
        found = read(audit, *asked)
        audit.start(FORM | {"columns": {"age": ""}})
        return found

    monkeypatch.setattr(OwnAudit, "_described", slowly)
    with pytest.raises(ConfigError, match="an audit is running"):
        own.take(late)
    assert own.state["state"] == "running"
    assert (tmp_path / "mine.csv").exists()
    assert not late.exists()


def test_what_is_refused_is_removed_at_once(tmp_path: Path) -> None:
    own = OwnAudit(tmp_path)
    for name, take in (("t.csv", own.take), ("m.npz", own.take_weights)):
        place = own.place(name, model=name == "m.npz")
        place.write_text("no table, no model")
        with pytest.raises(VflensError):
            take(place)
        assert not place.exists()
