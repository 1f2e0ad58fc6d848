"""The explorer without a browser: what it answers, and whom it refuses."""

from __future__ import annotations

import http.client
import io
import json
import os
import re
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from random_files import forests
from same_forests import assert_paper, assert_same

import weitzman
from weitzman.cli import main
from weitzman.files.instances import schema
from weitzman.policy.simulation import payoff_law
from weitzman.show.explore import Server, workbench
from weitzman.show.explore.workbench import MOST, Workbench, document, forest

SOURCE = str(Path(weitzman.__file__).parents[1])
EXAMPLE = Path(weitzman.__file__).parent / "files" / "demo.json"


@pytest.fixture
def boxes(tmp_path, capsys) -> Path:
    """The file of the demo."""
    assert main(["demo", "--json"]) == 0
    path = tmp_path / "boxes.json"
    path.write_text(capsys.readouterr().out)
    return path


def ask(bench: Workbench, what: str, /, **request: Any) -> dict[str, Any]:
    return bench.answer(what, json.dumps(request).encode())


# -- documents -----------------------------------------------------------------------------------


@given(forests())
def test_documents_lose_nothing(problem):
    """What the page is sent, and sends back, is the same problem, in the published format."""
    text = document(problem)
    assert "kinds" not in text
    assert_same(forest(text), problem)


def test_documents_keep_to_the_schema():
    jsonschema = pytest.importorskip("jsonschema")
    line = weitzman.line(([0.5, 0.5], [[0.9, 0.1], [0.2, 0.8]]), rewards=[0, 9], cost=1, length=3)
    text = document(line)
    jsonschema.validate(text, schema())
    assert [box["name"] for box in text["boxes"]] == ["0", "1", "2"]
    assert [box.get("parent") for box in text["boxes"]] == [None, "0", "1"]


def test_a_page_cannot_hold_everything():
    many = weitzman.line([[0.5, 0.5]], rewards=[0, 1], cost=0.1)
    many = weitzman.side_by_side([many] * (MOST + 1))
    with pytest.raises(
        weitzman.errors.InvalidArgument, match=f"at most {MOST} boxes, but there are"
    ):
        document(many)


# -- questions -----------------------------------------------------------------------------------


def test_solving(boxes):
    bench = Workbench(str(boxes))
    text = bench.start()["document"]
    answer = ask(bench, "solve", document=text)
    assert answer["ok"]
    assert answer["value"] == pytest.approx(94.325, abs=1e-9)
    assert answer["index"][1] == pytest.approx([15, 914], abs=1e-9)
    assert answer["opened"] == pytest.approx([1, 0.55, 0.9], abs=1e-9)
    assert answer["first_box"] == "A"


def test_what_is_still_expected(boxes):
    bench = Workbench(str(boxes))
    solved = ask(bench, "solve", document=bench.start()["document"])["id"]
    assert ask(bench, "expect", id=solved, steps=[])["value"] == pytest.approx(94.325)
    after = ask(bench, "expect", id=solved, steps=[[0, [], 0]])
    assert after["value"] == pytest.approx(6.25)  # 50 - 25, or (21 or 10) - 28
    over = ask(bench, "expect", id=solved, steps=[[0, [], 1], [1, [], 3]])
    assert over["value"] == pytest.approx(920 - 23)


def test_a_broken_probability_is_named(boxes):
    bench = Workbench(str(boxes))
    text = bench.start()["document"]
    text["boxes"][1]["law"][1][3] = 0.4
    answer = ask(bench, "solve", document=text)
    assert answer == {
        "ok": False,
        "message": "probabilities must sum to 1, but those of box 'B' after 'A' shows '900' sum to "
        "0.9 (1 such row). Rescale the row, or give the missing mass a state of its own.",
    }


@pytest.mark.parametrize(
    ("what", "request_", "message"),
    [
        ("solve", b"{", "not valid JSON"),
        ("solve", b"[]", "must have a 'document'"),
        ("solve", b'{"document": {"format": "other"}}', "format must be"),
        ("expect", b'{"id": 99, "steps": []}', "no longer kept"),
        ("expect", b'{"id": [], "steps": 3}', "no longer kept"),
        ("save", b'{"document": {}}', "format"),
        ("save", b"[]", "must have a 'document'"),
        ("report", b"3", "must have a 'document'"),
        ("curve", b'{"document": {}}', "must have a 'box'"),
    ],
)
def test_questions_that_make_no_sense(what, request_, message):
    answer = Workbench().answer(what, request_)
    assert not answer["ok"]
    assert message in answer["message"]


def test_saving_and_loading_again(boxes):
    bench = Workbench(str(boxes))
    text = bench.start()["document"]
    text["boxes"][2]["cost"] = 6
    assert ask(bench, "save", document=text)["file"] == "boxes.json"
    assert weitzman.load(boxes).costs.data.tolist().count(6.0) == 1
    assert ask(bench, "save", document=text)["ok"]  # our own change is no surprise
    again = Workbench(str(boxes)).start()
    assert again["document"]["boxes"][2]["cost"] == 6
    assert not again["isNew"]


def test_a_file_that_others_changed_is_not_overwritten(boxes):
    bench = Workbench(str(boxes))
    text = bench.start()["document"]
    boxes.write_text(boxes.read_text() + " ")
    before = boxes.read_bytes()
    answer = ask(bench, "save", document=text)
    assert answer["taken"]
    assert "was changed by another program" in answer["message"]
    assert boxes.read_bytes() == before
    assert ask(bench, "save", document=text, anyway=True)["ok"]
    assert_paper(weitzman.load(boxes))


def test_an_invalid_document_is_not_saved(boxes):
    bench = Workbench(str(boxes))
    before = boxes.read_bytes()
    text = bench.start()["document"]
    text["boxes"][0]["law"] = [0.5, 0.6]
    assert not ask(bench, "save", document=text)["ok"]
    assert boxes.read_bytes() == before


def test_files_of_all_kinds_can_be_opened(boxes, tmp_path):
    problem = weitzman.load(boxes)
    for name in ("a.json", "a.json.gz", "a.wz"):
        weitzman.save(problem, tmp_path / name)
        answer = Workbench().answer("read", (tmp_path / name).read_bytes(), name)
        assert_same(forest(answer["document"]), problem)
    answer = Workbench().answer("read", b"hello", "notes.txt")
    assert answer["message"].startswith(
        "notes.txt: a file of boxes must end in .json, .json.gz, .wz"
    )
    answer = Workbench().answer("read", b"hello", "a.json")
    assert answer["message"].startswith("a.json: not valid JSON")


def test_solutions_are_not_kept_for_ever():
    bench = Workbench()
    text = ask(bench, "example")["document"]
    ids = [ask(bench, "solve", document=text)["id"] for _ in range(workbench._KEPT + 1)]
    assert not ask(bench, "expect", id=ids[0], steps=[])["ok"]
    assert ask(bench, "expect", id=ids[-1], steps=[])["ok"]


# -- who is answered -----------------------------------------------------------------------------


@contextmanager
def serving(patience: float = 60.0) -> Iterator[Server]:
    """An explorer that runs."""
    with Server(Workbench()) as running:
        running.patience = patience
        thread = threading.Thread(target=running.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        try:
            yield running
        finally:
            running.shutdown()
            thread.join()


@pytest.fixture(scope="module")
def server():
    with serving() as running:
        yield running


def reply(
    server: Server, method: str, path: str, body: bytes | None = None, **headers: str
) -> tuple[http.client.HTTPResponse, bytes]:
    connection = http.client.HTTPConnection("127.0.0.1", server.server_port, timeout=60)
    named = {key.replace("_", "-"): value for key, value in headers.items()}
    connection.request(method, path, body=body, headers=named)
    response = connection.getresponse()
    content = response.read()
    connection.close()
    return response, content


def test_the_page_is_served_with_a_strict_policy(server):
    response, content = reply(server, "GET", f"/{server.token}/")
    assert response.status == 200
    policy = response.headers["Content-Security-Policy"]
    assert b'<script type="module" src="explore.js"></script>' in content
    inline = re.findall(rb"<(?:script|style)[^>]*>(?=[^<])", content)
    assert inline == [b'<script type="application/json" id="data">']  # data is never run
    assert policy.startswith("default-src 'none'; script-src 'self'; style-src 'self';")
    assert "unsafe" not in policy
    assert "nonce" not in policy
    assert "require-trusted-types-for 'script'" in policy
    assert "frame-ancestors 'none'" in policy
    assert response.headers["Cache-Control"] == "no-store"
    assert response.headers["Referrer-Policy"] == "no-referrer"
    assert response.headers["X-Content-Type-Options"] == "nosniff"
    for name, kind in (("explore.js", "text/javascript"), ("explore.css", "text/css")):
        response, content = reply(server, "GET", f"/{server.token}/{name}")
        assert response.headers["Content-Type"] == f"{kind}; charset=utf-8"
        assert len(content) > 1000
        assert reply(server, "GET", f"/{name}")[0].status == 403


def test_nothing_is_answered_without_the_token(server):
    for path in ("/", "/solve", "/wrong/", "/wrong/solve", f"/{server.token[:-1]}/", "//"):
        for method, body in (("GET", None), ("POST", b"{}")):
            response, content = reply(server, method, path, body)
            assert response.status == 403
            assert b"token" in content


def test_other_origins_are_rejected(server):
    path, good = f"/{server.token}/example", f"http://127.0.0.1:{server.server_port}"
    assert reply(server, "POST", path, b"{}", Origin=good)[0].status == 200
    for origin in (
        "http://evil.example",
        "null",
        good + ".evil.example",
        good[:-1],
        "https" + good[4:],
    ):
        response, content = reply(server, "POST", path, b"{}", Origin=origin)
        assert response.status == 403
        assert b"origins" in content
        assert "Access-Control-Allow-Origin" not in response.headers
    for site in ("cross-site", "same-site"):
        assert reply(server, "POST", path, b"{}", Sec_Fetch_Site=site)[0].status == 403
        assert reply(server, "GET", f"/{server.token}/", Sec_Fetch_Site=site)[0].status == 403


def test_other_host_names_are_rejected(server):
    """A name that an attacker's name server points at this machine."""
    for host in ("evil.example", f"evil.example:{server.server_port}", "127.0.0.1", ""):
        response, _ = reply(server, "GET", f"/{server.token}/", Host=host)
        assert response.status == 403
    local = f"localhost:{server.server_port}"
    assert reply(server, "GET", f"/{server.token}/", Host=local)[0].status == 200


def test_only_this_machine_is_listened_to(server):
    assert server.server_address[0] == "127.0.0.1"


def test_requests_that_are_not_understood(server):
    token = server.token
    assert reply(server, "GET", f"/{token}/nothing")[0].status == 404
    assert reply(server, "POST", f"/{token}/nothing", b"{}")[0].status == 404
    assert reply(server, "DELETE", f"/{token}/")[0].status == 501
    response, content = reply(server, "POST", f"/{token}/solve", b"not json")
    assert response.status == 200
    assert json.loads(content)["message"].startswith("not valid JSON")


def test_bodies_have_limits(server):
    with socket.create_connection(("127.0.0.1", server.server_port), timeout=60) as wire:
        wire.sendall(
            f"POST /{server.token}/solve HTTP/1.1\r\nHost: 127.0.0.1:{server.server_port}\r\n"
            f"Content-Length: {2**40}\r\n\r\n".encode()
        )
        assert b"413" in wire.recv(100)
    with socket.create_connection(("127.0.0.1", server.server_port), timeout=60) as wire:
        wire.sendall(
            f"POST /{server.token}/solve HTTP/1.1\r\n"
            f"Host: 127.0.0.1:{server.server_port}\r\n\r\n".encode()
        )
        assert b"411" in wire.recv(100)


def test_a_hundred_boxes_are_solved_at_once(server):
    """Sending, reading, solving, evaluating: at best less than 100 ms of processor time."""
    rng = np.random.default_rng(0)
    parent = [-1 if i % 4 == 0 else i - 1 for i in range(100)]
    law = [rng.dirichlet([1, 1, 1]) if p < 0 else rng.dirichlet([1, 1, 1], 3) for p in parent]
    problem = weitzman.Forest.from_arrays(
        parent=parent, cost=rng.uniform(0.2, 2, 100), rewards=rng.uniform(0, 20, (100, 3)), law=law
    )
    body = json.dumps({"document": document(problem)}).encode()
    took = []
    for _ in range(10):
        start = time.process_time()  # the server is a thread of this process
        _, content = reply(server, "POST", f"/{server.token}/solve", body)
        took.append(time.process_time() - start)
        assert json.loads(content)["value"] == weitzman.solve(problem).value
    assert min(took) < 0.1


# -- the command ---------------------------------------------------------------------------------


def test_a_port_that_is_taken(server, capsys):
    assert main(["explore", "--no-browser", "--port", str(server.server_port)]) == 3
    message = capsys.readouterr().err
    assert f"port {server.server_port} cannot be used: Address already in use" in message
    assert "leave it out" in message


def test_files_that_cannot_be(tmp_path, capsys):
    (tmp_path / "notes.txt").write_text("hello")
    for arguments, code, message in (
        ([str(tmp_path / "notes.txt")], 1, "must end in .json, .json.gz or .wz"),
        ([str(tmp_path / "new.txt")], 1, "must end in .json, .json.gz or .wz"),
        ([str(tmp_path / "no" / "new.json")], 3, "cannot be written"),
        (["--port", "70000"], 2, "70000 is not in the range 1<=x<=65535"),
    ):
        assert main(["explore", "--no-browser", *arguments]) == code
        assert message in capsys.readouterr().err


def test_the_command_serves_until_it_is_interrupted(tmp_path, request):
    import signal

    command = [
        sys.executable,
        "-m",
        "weitzman",
        "explore",
        str(tmp_path / "new.json"),
        "--no-browser",
    ]
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        env={"PYTHONPATH": SOURCE, "PATH": "/usr/bin"},
        # a parent in the background may ignore the signal, and children inherit that
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )  # fmt: skip
    request.addfinalizer(process.kill)
    assert process.stdout is not None
    assert "new.json does not exist yet: Save will write it." in process.stdout.readline()
    address = re.fullmatch(
        r"Exploring at (http://127\.0\.0\.1:(\d+)/[\w-]{32}/)\n", process.stdout.readline()
    )
    assert address is not None
    connection = http.client.HTTPConnection("127.0.0.1", int(address[2]), timeout=60)
    connection.request("GET", "/" + address[1].split("/", 3)[3])
    assert connection.getresponse().status == 200
    connection.close()
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 0
    assert out.endswith("Ended.\n")
    assert err == ""


def test_the_command_explores_standard_input(capsys, monkeypatch):
    text = b'{"format": "weitzman/1", "boxes": [{"name": "A", "cost": 1, "outcomes": {"9": 1}}]}'
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(text)))
    benches = []

    def serve(server: Server) -> None:
        benches.append(server.workbench)
        raise KeyboardInterrupt

    monkeypatch.setattr(Server, "serve_forever", serve)
    assert main(["explore", "-", "--no-browser"]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    assert out.startswith("The page offers a download of what is changed.\nExploring at http://")
    assert out.endswith("Ended.\n")
    start = benches[0].start()
    assert [box["name"] for box in start["document"]["boxes"]] == ["A"]
    assert start["file"] is None  # Save has no file to write to


@pytest.mark.parametrize("steps", [3, [3], [[0]], [["none", [], 0]], [[0, "x", 0]], [[0, [], 99]]])
def test_steps_that_make_no_sense_get_a_message(boxes, steps):
    bench = Workbench(str(boxes))
    solved = ask(bench, "solve", document=bench.start()["document"])["id"]
    answer = ask(bench, "expect", id=solved, steps=steps)
    assert not answer["ok"]
    assert answer["message"]


def test_the_risk_profile_is_that_of_the_report():
    """The explorer had no risk profile."""
    bench = Workbench()
    text = json.dumps({"document": json.loads(EXAMPLE.read_text("utf-8"))}).encode()
    solved = bench.answer("solve", text)
    found = bench.answer("profile", json.dumps({"id": solved["id"]}).encode())
    assert found["ok"]
    law = payoff_law(weitzman.solve(weitzman.load(EXAMPLE)))
    best = found["laws"][0]
    assert (best["x"], found["worse"], found["how"]) == (law.values.tolist(), law.worse, "exact")
    assert best["p"] == pytest.approx(np.cumsum(law.chances).tolist(), abs=1e-12)
    assert "no longer kept" in bench.answer("profile", b'{"id": 99}')["message"]


def test_two_thousand_boxes_are_answered_without_a_compiler(tmp_path):
    """The first answer took 17 s of compiling."""
    code = (
        "import numpy as np, weitzman as w\n"
        "from weitzman._kernels.jit import avoid_compiling, compiled_code\n"
        "p = np.linspace(0.1, 0.9, 2000)\n"
        "f = w.Forest.from_arrays(parent=[-1] * 2000, cost=p[::-1] + 0.2, rewards=[0, 5],\n"
        "                         law=np.column_stack([p, 1 - p]))\n"
        "with avoid_compiling(16):\n"
        "    e = w.evaluate(w.solve(f))\n"
        "    print(compiled_code().ready, abs(e.value - w.solve(f).value) < 1e-9)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=True,
        env={**os.environ, "WEITZMAN_CACHE_DIR": str(tmp_path), "PYTHONPATH": SOURCE},
    )  # fmt: skip
    assert done.stdout == "() True\n"
    assert not any(tmp_path.iterdir())


def test_the_button_for_files_keeps_its_word():
    """With --words study,run it said "Run…"."""
    server = Server(Workbench(words=("study", "run")))
    try:
        _, page = server.content("")
    finally:
        server.server_close()
    assert ">Open…</button>" in page
    assert "Add a study" in page
