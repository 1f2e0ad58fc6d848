"""Whom the explorer refuses, which files it writes, and what it says of other numbers."""

from __future__ import annotations

import json
import re
import socket
import subprocess
import sys
import time
from importlib.resources import files
from pathlib import Path

import numpy as np
import pytest
from same_forests import assert_paper
from test_explore import SOURCE, ask, reply, serving

import weitzman
from weitzman.files.written_tables import write_template
from weitzman.show.explore import Server
from weitzman.show.explore.workbench import Workbench, forest


@pytest.fixture
def boxes(tmp_path) -> Path:
    """The file of the demo."""
    path = tmp_path / "boxes.json"
    path.write_bytes(files("weitzman.files").joinpath("demo.json").read_bytes())
    return path


@pytest.fixture(scope="module")
def server():
    with serving() as running:
        yield running


def raw(server: Server, *pieces: bytes) -> bytes:
    """What is answered to bytes as they are, until the server hangs up or says nothing more."""
    with socket.create_connection(("127.0.0.1", server.server_port), timeout=60) as wire:
        for piece in pieces:
            wire.sendall(piece)
        found = b""
        try:
            while more := wire.recv(65536):
                found += more
                if b"Connection: close" in found:
                    break
        except (TimeoutError, ConnectionResetError):
            pass
    return found


def head(server: Server, path: str, *lines: str) -> bytes:
    host = f"Host: 127.0.0.1:{server.server_port}"
    return "\r\n".join([f"{path} HTTP/1.1", host, *lines, "", ""]).encode()


@pytest.mark.parametrize(
    "path",
    [
        "../../etc/passwd", "..%2f..%2fetc%2fpasswd", "explore.js/../../x", "%00", "explore.html",
        "workbench.py", "//etc/passwd", "\\..\\x", "explore.js?x=/../..", "solve",
    ],
)  # fmt: skip
def test_no_path_leads_to_a_file(server, path):
    response, content = reply(server, "GET", f"/{server.token}/{path}")
    assert response.status == 404
    assert content == b"there is no such page.\n"


def test_lengths_and_heads_without_measure_are_rejected(server):
    post = f"POST /{server.token}/solve"
    assert b" 413 " in raw(server, head(server, post, f"Content-Length: {'9' * 5000}"))
    assert b" 411 " in raw(server, head(server, post, "Content-Length: -5"))
    assert b" 411 " in raw(server, head(server, post, "Transfer-Encoding: chunked"))
    assert b" 431 " in raw(server, head(server, post, f"X: {'a' * 70_000}"))
    assert b" 431 " in raw(server, head(server, post, *["X: a"] * 200))
    assert b" 414 " in raw(server, head(server, f"GET /{'a' * 70_000}"))
    assert reply(server, "GET", f"/{server.token}/")[0].status == 200  # it still answers


def test_slow_clients_are_hung_up_on():
    """A byte now and then keeps no thread: the whole request has a deadline."""
    with serving(0.5) as slow:
        body = head(slow, f"POST /{slow.token}/solve", "Content-Length: 100")
        for begin in (b"GET /", body):
            with socket.create_connection(("127.0.0.1", slow.server_port), timeout=60) as wire:
                wire.sendall(begin)
                start, alive = time.monotonic(), True
                while alive and time.monotonic() - start < 15:
                    time.sleep(0.1)
                    try:
                        wire.sendall(b"x")
                        alive = wire.recv(1, socket.MSG_DONTWAIT) != b""
                    except BlockingIOError:
                        pass
                    except OSError:
                        alive = False
                assert not alive
        assert reply(slow, "GET", f"/{slow.token}/")[0].status == 200


def test_idle_strangers_cannot_shut_the_user_out(server):
    """64 silent connections without the token kept the user out for up to a minute."""
    place = ("127.0.0.1", server.server_port)
    crowd = [socket.create_connection(place, timeout=60) for _ in range(150)]
    for _ in range(3):
        assert reply(server, "GET", f"/{server.token}/")[0].status == 200
    for wire in crowd:
        wire.close()


def test_too_many_connections_are_turned_away_and_make_room_again(server):
    page = head(server, f"GET /{server.token}/")
    crowd = []
    for i in range(90):  # all but the last few have shown the token
        crowd.append(socket.create_connection(("127.0.0.1", server.server_port), timeout=60))
        if i < 70:
            crowd[-1].sendall(page)
            assert crowd[-1].recv(12)[9:] in (b"200", b"503")
    answers = []
    for wire in crowd[70:]:
        try:
            answers.append(wire.recv(100))
        except OSError:  # hung up on before it could read
            answers.append(b"")
    assert any(b" 503 " in answer for answer in answers)
    for wire in crowd:
        wire.close()
    for _ in range(100):
        if reply(server, "GET", f"/{server.token}/")[0].status == 200:
            break
        time.sleep(0.05)
    assert reply(server, "GET", f"/{server.token}/")[0].status == 200


def test_a_link_opens_the_page_but_asks_nothing(server):
    """The way through the door: a window that opens the page, from a file or a mail."""
    link = {
        "Sec_Fetch_Site": "cross-site",
        "Sec_Fetch_Mode": "navigate",
        "Sec_Fetch_Dest": "document",
    }
    assert reply(server, "GET", f"/{server.token}/", **link)[0].status == 200
    assert reply(server, "POST", f"/{server.token}/example", b"{}", **link)[0].status == 403
    frame = {**link, "Sec_Fetch_Dest": "iframe"}
    assert reply(server, "GET", f"/{server.token}/", **frame)[0].status == 403
    assert reply(server, "GET", "/wrong/", **link)[0].status == 403


def test_the_door_leads_to_the_page_and_nobody_else_can_read_it(server):
    with server.door() as door:
        path = Path(door.removeprefix("file://"))
        assert server.token not in door
        assert server.address in path.read_text()
        assert path.stat().st_mode & 0o077 == 0
        assert path.parent.stat().st_mode & 0o077 == 0
    assert not path.exists()


def test_the_token_is_no_argument_of_any_process(tmp_path):
    """A browser of our own writes down how it was called."""
    seen = tmp_path / "arguments"
    browser = tmp_path / "browser"
    browser.write_text(f'#!/bin/sh\necho "$@" > {seen}\n')
    browser.chmod(0o755)
    process = subprocess.Popen(
        [sys.executable, "-m", "weitzman", "explore"], stdout=subprocess.PIPE, text=True,
        env={"PYTHONPATH": SOURCE, "PATH": "/usr/bin:/bin", "BROWSER": f"{browser} %s"},
    )  # fmt: skip
    try:
        assert process.stdout is not None
        token = re.search(r"/([\w-]{32})/", process.stdout.readline())[1]
        for _ in range(400):
            if seen.exists() and seen.read_text():
                break
            time.sleep(0.05)
        assert seen.read_text().startswith("file://")
        assert token not in seen.read_text()
        assert token.encode() not in Path(f"/proc/{process.pid}/cmdline").read_bytes()
    finally:
        process.terminate()
        process.communicate(timeout=60)


# -- which file is written ---------------------------------------------------------------------


def test_another_name_is_saved_beside_the_file_and_becomes_the_file(boxes):
    bench = Workbench(str(boxes))
    text = bench.start()["document"]
    before = boxes.read_bytes()
    answer = ask(bench, "save", document=text, name="other.json")
    assert answer["ok"]
    assert answer["file"] == "other.json"
    assert_paper(weitzman.load(boxes.parent / "other.json"))
    assert boxes.read_bytes() == before
    again = ask(bench, "save", document=text, name="other.json", own=True)
    assert again["file"] == "other.json"
    assert ask(bench, "save", document=text, name="boxes.json")["taken"]  # other boxes, by a name
    assert boxes.read_bytes() == before


def test_a_file_of_that_name_is_not_replaced_unasked(boxes):
    other = boxes.parent / "three.json"
    other.write_text("precious")
    bench = Workbench(str(boxes))
    text = bench.start()["document"]
    answer = ask(bench, "save", document=text, name="three.json")
    assert answer["taken"]
    assert "already exists" in answer["message"]
    assert other.read_text() == "precious"
    assert ask(bench, "save", document=text, name="three.json", anyway=True)["ok"]
    assert_paper(weitzman.load(other))


@pytest.mark.parametrize(
    "name",
    [
        "../up.json", "/tmp/abs.json", "a/b.json", "a\\b.json", "..json", ".hidden.json",
        "nul\0.json", "line\n.json", "notes.txt", "", 7, ["x.json"], "a" * 300 + ".json",
        "c:evil.json",
    ],
)  # fmt: skip
def test_names_that_lead_elsewhere_are_rejected(boxes, name):
    bench = Workbench(str(boxes))
    text = bench.start()["document"]
    before = sorted(p.name for p in boxes.parent.iterdir())
    answer = ask(bench, "save", document=text, name=name, anyway=True)
    assert not answer["ok"]
    assert "file name must" in answer["message"]
    assert sorted(p.name for p in boxes.parent.iterdir()) == before


def test_links_and_folders_are_not_written_through(boxes):
    bench = Workbench(str(boxes))
    text = bench.start()["document"]
    aim = boxes.parent / "aim.txt"
    aim.write_text("precious")
    (boxes.parent / "link.json").symlink_to(aim)
    (boxes.parent / "folder.json").mkdir()
    for name in ("link.json", "folder.json"):
        answer = ask(bench, "save", document=text, name=name, anyway=True)
        assert "is a link or a folder" in answer["message"]
    assert aim.read_text() == "precious"


def test_tables_can_be_opened(boxes):
    rows = ("A,,,low,0,0.5,1", "A,,,high,10,0.5,1")
    table = "\n".join(("box,parent,parent_state,state,reward,probability,cost", *rows, ""))
    answer = Workbench().answer("read", table.encode(), "stages.csv")
    assert answer["ok"], answer
    assert answer["document"]["boxes"][0]["name"] == "A"
    assert weitzman.solve(forest(answer["document"])).value == 4


# -- what if, and reports ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("box", "what", "row", "state"),
    [
        (0, "cost", 0, 0), (1, "cost", 0, 0), (1, "reward", 0, 3), (0, "chance", 0, 1),
        (2, "chance", 0, 0),
    ],
)  # fmt: skip
def test_curves_are_what_a_solve_of_the_changed_problem_gives(boxes, box, what, row, state):
    bench = Workbench(str(boxes))
    text = bench.start()["document"]
    found = ask(bench, "curve", document=text, box=box, what=what, row=row, state=state)
    x, value = found["x"], found["value"]
    assert (np.diff(x) > 0).all()
    assert value[found["now"]] == pytest.approx(94.325)
    for i in (0, len(x) // 2, len(x) - 1):
        again = json.loads(json.dumps(text))
        entry = again["boxes"][box]
        if what == "cost":
            entry["cost"] = x[i]
        elif what == "reward":
            entry["rewards"][state] = x[i]
        else:
            entry["law"] = [1 - x[i], x[i]] if state else [x[i], 1 - x[i]]
        assert value[i] == pytest.approx(weitzman.solve(forest(again)).value, abs=1e-9)


def test_the_number_as_it_is_lies_on_the_curve(boxes):
    bench = Workbench(str(boxes))
    text = bench.start()["document"]
    for place, now in (
        ((0, "cost", 0, 0), 20),
        ((1, "reward", 0, 3), 920),
        ((0, "chance", 0, 1), 0.1),
    ):
        keys = zip(("box", "what", "row", "state"), place, strict=True)
        found = ask(bench, "curve", document=text, **dict(keys))
        assert found["x"][found["now"]] == pytest.approx(now)


@pytest.mark.parametrize(
    "bad", [{"box": 9}, {"what": "name"}, {"row": 5}, {"state": -1}, {"box": "A"}]
)
def test_curves_of_nothing(boxes, bad):
    bench = Workbench(str(boxes))
    place = {"box": 0, "what": "cost", "row": 0, "state": 0, **bad}
    answer = ask(bench, "curve", document=bench.start()["document"], **place)
    assert not answer["ok"]
    assert "bug" not in answer["message"]


def test_a_report_from_the_page(boxes):
    bench = Workbench(str(boxes))
    answer = ask(bench, "report", document=bench.start()["document"], title="<b>")
    assert "Start with <bdi>A</bdi>: " in answer["html"]
    assert "&lt;b&gt;" in answer["html"]


def test_tables_are_saved_too_and_what_else_they_hold_is_not_lost_unasked(tmp_path):
    """A table could be opened but not saved, and a workbook lost its notes at the first Save."""
    openpyxl = pytest.importorskip("openpyxl")
    path = tmp_path / "stages.xlsx"
    write_template(str(path))
    before = path.read_bytes()
    bench = Workbench(str(path))
    text = bench.start()["document"]
    answer = ask(bench, "save", document=text)
    assert answer["taken"]
    assert "stages.xlsx may hold more than its boxes" in answer["message"]
    assert path.read_bytes() == before
    for name in ("other.xlsx", "other.csv", "other.tsv"):
        assert ask(bench, "save", document=text, name=name)["file"] == name
        found = weitzman.load(tmp_path / name)
        assert found.unit == "$"
        assert weitzman.solve(found).value == weitzman.solve(weitzman.load(path)).value
        assert ask(bench, "save", document=text, own=True)["ok"]  # its own table
    assert ask(bench, "save", document=text, name="stages.xlsx", anyway=True)["ok"]
    assert openpyxl.load_workbook(path).sheetnames == ["boxes"]


def test_a_page_does_not_quote_options_of_the_command_alone(tmp_path):
    openpyxl = pytest.importorskip("openpyxl")
    book = openpyxl.Workbook()
    for sheet in (book.active, book.create_sheet("Plan B")):
        sheet.append(["box", "state", "reward", "probability", "cost"])
        sheet.append(["a", "x", 3, 1, 1])
    book.save(tmp_path / "two.xlsx")
    answer = Workbench().answer("read", (tmp_path / "two.xlsx").read_bytes(), "two.xlsx")
    assert "Say which: weitzman explore two.xlsx --sheet Sheet." in answer["message"]


def test_the_stale_one_of_two_tabs_saves_over_nothing(boxes):
    """Two tabs on one file: the second to save lost the work of the first without a word."""
    bench = Workbench(str(boxes))
    first, second = bench.start(), bench.start()
    first["document"]["boxes"][0]["cost"] = 21
    request = {"document": first["document"], "version": first["version"]}
    saved = bench.answer("save", json.dumps(request).encode())
    assert saved["ok"]
    assert saved["version"] != second["version"]
    request = {"document": second["document"], "version": second["version"]}
    stale = bench.answer("save", json.dumps(request).encode())
    assert stale["taken"]
    assert "changed in another tab" in stale["message"]
    assert weitzman.load(boxes).costs[0].max() == 21
    again = {"document": first["document"], "version": saved["version"]}
    assert "taken" not in bench.answer("save", json.dumps(again).encode())
