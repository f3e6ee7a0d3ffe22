"""Executables ``pytest`` and ``pytest-fairness`` for the shells of tests: what they run is forked,
as the sessions of tests are, and need not import what it needs.
"""

from __future__ import annotations

import contextlib
import json
import shutil
import socketserver
import sys
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path

from tests.support.sessions import COMMAND, run_pytest

#: The module that each executable runs.
MODULES = {"pytest": "pytest", "pytest-fairness": COMMAND}
#: Asks the process that tests for the session or command, and says and ends as that does.
SCRIPT = """#!{python} -IS
import json, os, socket, sys
server = socket.socket(socket.AF_UNIX)
server.connect({address!r})
server.sendall(json.dumps([{module!r}, os.getcwd(), sys.argv[1:], dict(os.environ)]).encode())
server.shutdown(socket.SHUT_WR)
code, out, err = json.loads(b"".join(iter(lambda: server.recv(65536), b"")))
sys.stdout.buffer.write(out.encode())
sys.stderr.buffer.write(err.encode())
sys.exit(code)
"""


class _Requests(socketserver.StreamRequestHandler):
    """Runs the session or command that is asked for."""

    def handle(self) -> None:
        module, folder, arguments, environment = json.loads(self.rfile.read())
        done = run_pytest(Path(folder), *arguments, environment=environment, module=module)
        texts = ["".join(f"{line}\n" for line in lines) for lines in (done.outlines, done.errlines)]
        self.wfile.write(json.dumps([int(done.ret), *texts]).encode())


@contextlib.contextmanager
def programs(folder: Path) -> Iterator[None]:
    """Have the executables in *folder*, which work until the end of the block."""
    short = tempfile.mkdtemp()  # a socket's path is short
    address = f"{short}/requests"
    for name, module in MODULES.items():
        path = folder / name
        path.write_text(SCRIPT.format(python=sys.executable, address=address, module=module))
        path.chmod(0o755)
    with socketserver.UnixStreamServer(address, _Requests) as server:
        threading.Thread(target=server.serve_forever, args=(0.01,)).start()
        try:
            yield
        finally:
            server.shutdown()
            shutil.rmtree(short)
