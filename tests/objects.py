"""A throw-away S3 server for tests: moto's, in a process of its own."""

from __future__ import annotations

import itertools
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

from tests.services import READY_SECONDS, end_with_parent, free_port

ROOT = Path(__file__).resolve().parents[1]


class S3Server:
    """Holds everything in memory."""

    access_key = "floodmark"
    secret_key = "s3cret-pw"

    def __init__(self) -> None:
        self.port = free_port()
        self._process: subprocess.Popen[bytes] | None = None
        self._numbers = itertools.count(1)

    @property
    def endpoint(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def environment(self) -> dict[str, str]:
        """What a user sets for a server that is not Amazon's."""
        return {
            "AWS_ENDPOINT_URL": self.endpoint,
            "AWS_ALLOW_HTTP": "true",
            "AWS_REGION": "us-east-1",
            "AWS_ACCESS_KEY_ID": self.access_key,
            "AWS_SECRET_ACCESS_KEY": self.secret_key,
        }

    def __enter__(self) -> S3Server:
        command = [sys.executable, "-m", "tests.objects", str(self.port)]
        self._process = subprocess.Popen(
            command, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, preexec_fn=end_with_parent
        )
        deadline = time.monotonic() + READY_SECONDS
        while True:
            try:
                self.request("GET", "")
                return self
            except OSError:
                assert self._process.poll() is None, "the S3 server did not start"
                assert time.monotonic() < deadline, "the S3 server did not answer in time"
                time.sleep(0.05)

    def __exit__(self, *_: object) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()

    def create_bucket(self) -> str:
        """Its URL."""
        name = f"bucket-{next(self._numbers)}"
        self.request("PUT", name)
        return f"s3://{name}"

    def request(
        self, method: str, path: str, body: bytes | None = None, headers: dict[str, str] | None = None
    ) -> tuple[int, bytes]:
        """Plain HTTP, past every library: what the server itself says."""
        # Signed by nobody, but named: moto takes a request without this for a stranger's.
        ours = {"Authorization": f"AWS {self.access_key}:signature", "Content-Type": "application/octet-stream"}
        request = urllib.request.Request(  # noqa: S310 - our own server
            f"{self.endpoint}/{path}", data=body, method=method, headers={**ours, **(headers or {})}
        )
        try:
            with urllib.request.urlopen(request, timeout=30) as answer:  # noqa: S310
                return answer.status, answer.read()
        except urllib.error.HTTPError as error:
            return error.code, error.read()


def serve(port: int) -> None:
    from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app
    from werkzeug.serving import make_server

    # One request at a time: moto looks at a condition and stores the object in two steps, with no lock around them.
    make_server("127.0.0.1", port, DomainDispatcherApplication(create_backend_app), threaded=False).serve_forever()


if __name__ == "__main__":
    serve(int(sys.argv[1]))
