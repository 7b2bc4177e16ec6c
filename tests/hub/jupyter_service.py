"""A real Jupyter server on loopback, with one of the hub's extensions, and a browser's part in talking to it."""

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from http.cookiejar import CookieJar
from pathlib import Path

from autograder.hub import ports

TOKEN = "secret"


class Server:
    """A Jupyter server on loopback with one extension in nbgrader's place, asked as a browser would."""

    def __init__(self, folder: Path, cwd: Path, extension: str, **environment: str) -> None:
        self.log = folder / "server.log"
        config = folder / "jupyter"
        config.mkdir()
        stock = "nbgrader.server_extensions." + extension.rpartition(".")[2]
        enabled = {stock: False, extension: True, "jupyterlab": False, "notebook": False, "nbgrader": False}
        server = {"jpserver_extensions": enabled, "allow_root": True, "open_browser": False, "port_retries": 0}
        (port,) = ports.free()
        server |= {"port": port, "ip": "127.0.0.1", "root_dir": str(cwd), "base_url": "/services/amp/"}
        (config / "jupyter_server_config.json").write_text(
            json.dumps({"ServerApp": server, "IdentityProvider": {"token": TOKEN}})
        )
        self.url = f"http://127.0.0.1:{port}/services/amp"
        self.cookies = CookieJar()
        self.browser = urllib.request.build_opener(urllib.request.HTTPCookieProcessor(self.cookies))
        environment = {
            **os.environ,
            "JUPYTER_CONFIG_DIR": str(config),
            "HOME": str(folder),
            "PYTHONPATH": str(folder),
            **environment,
        }
        with open(self.log, "wb") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-P", "-m", "jupyter_server"], cwd=cwd, env=environment, stdout=log, stderr=log
            )
        until(lambda: self.answers(), f"the server to start: {self.log}")

    def answers(self) -> bool:
        assert self.process.poll() is None, self.log.read_text()
        with contextlib.suppress(OSError):
            return self.get("/api/status")[0] == 200
        return False

    def ask(
        self, method: str, path: str, body: dict | None = None, timeout: float = 60, xsrf: bool = True
    ) -> tuple[int, str]:
        """Status and body of an answer."""
        request = urllib.request.Request(self.url + path, method=method, headers={"Authorization": f"token {TOKEN}"})
        if xsrf and (cookie := next((one for one in self.cookies if one.name == "_xsrf"), None)):
            request.add_header("X-XSRFToken", cookie.value)
        if body is not None:
            request.data = json.dumps(body).encode()
        try:
            with self.browser.open(request, timeout=timeout) as answer:
                self.headers = answer.headers
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            with error:
                return error.code, error.read().decode()

    def get(self, path: str, **more) -> tuple[int, str]:
        return self.ask("GET", path, **more)

    def press(self, path: str) -> dict:
        """What a button of formgrader is answered."""
        status, body = self.ask("POST", "/formgrader/api" + path)
        assert status == 200, (path, status, body[-2000:], self.log.read_text()[-3000:])
        return json.loads(body)

    def close(self) -> None:
        self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


def until(true, what: str, seconds: float = 60) -> None:
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end, f"waited in vain for {what}"
        time.sleep(0.05)
