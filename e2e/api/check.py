"""Holds the running API against its own description: starts the binary on loopback with a workspace that
has something of everything, and lets Schemathesis call every operation as an admin.

python check.py BINARY OPENAPI DIRECTORY [schemathesis options]
"""

import json
import os
import pathlib
import subprocess
import sys
import time
import urllib.request

import scene

HERE = pathlib.Path(__file__).parent


def started(binary, directory):
    """The process and its address; the port is the system's choice, and the log tells it."""
    port = scene.free_port()
    base = f"http://127.0.0.1:{port}"
    command = [binary, "serve", "--listen", f"127.0.0.1:{port}", "--public-url", base]
    command += ["--data-dir", str(directory / "data"), "--log", "warn"]
    log = open(directory / "sluice.log", "w")
    process = subprocess.Popen(command, stdout=log, stderr=log, env=clean())
    for _ in range(600):
        if process.poll() is not None:
            raise SystemExit(f"sluice ended: see {directory / 'sluice.log'}")
        try:
            urllib.request.urlopen(f"{base}/readyz", timeout=5).read()
            return process, base
        except OSError:
            time.sleep(0.1)
    process.kill()
    raise SystemExit("sluice was not ready within a minute")


def clean():
    """The environment without what would change the binary's settings or Schemathesis's ways out."""
    dropped = ("SLUICE_", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "SCHEMATHESIS_")
    return {k: v for k, v in os.environ.items() if not k.upper().startswith(dropped)}


def toml(value):
    return json.dumps(value)


def configuration(seeded, document):
    """What Schemathesis is told: which ids there are, and which operations take text that only they can check."""
    lines = ["[parameters]"]
    lines += [f'"path.ws" = {toml(seeded["ws"])}', f'"path.tool" = {toml(seeded["tool"])}']
    lines += ['"path.version" = 1', '"header.If-Match" = "*"', "", "[checks]"]
    # Ours for a missing `If-Match`, which the check does not know.
    lines += ["missing_required_header.expected-statuses = [400, 401, 403, 422, 428]"]
    for path, item in document["paths"].items():
        for method in item:
            known = scene.id_of(seeded, method, path)
            needs = scene.checked_by_itself(method, path)
            # "Wrong" bodies of these are at times none at all, which is right. Our own tests send wrong ones.
            optional = not item[method].get("requestBody", {"required": True}).get("required")
            if known is None and not needs:
                continue
            lines += ["", "[[operations]]", f"include-name = {toml(f'{method.upper()} {path}')}"]
            if known is not None:
                lines += [f'parameters = {{ "path.id" = {toml(known)} }}']
            if optional:
                lines += ["checks.negative_data_rejection.enabled = false"]
            if needs:
                lines += ["checks.positive_data_acceptance.expected-statuses = "]
                lines[-1] += toml(["2xx", "404", "409", "422", "502"])
    return "\n".join(lines) + "\n"


def main():
    binary, openapi, directory = sys.argv[1], sys.argv[2], pathlib.Path(sys.argv[3])
    directory.mkdir(parents=True, exist_ok=True)
    document = json.loads(pathlib.Path(openapi).read_text())
    upstream = scene.upstream()
    process, base = started(binary, directory)
    try:
        seeded = scene.seed(binary, directory / "data", base, upstream, clean())
        config = directory / "schemathesis.toml"
        config.write_text(configuration(seeded, document))
        environment = clean() | {
            "SCHEMATHESIS_HOOKS": "hooks",
            "PYTHONPATH": str(HERE),
            "API_UPSTREAM": upstream,
            "API_TOKENS": " ".join(seeded["tokens"]),
            "NO_PROXY": "*",
        }
        program = pathlib.Path(sys.executable).with_name("schemathesis")
        command = [program, "--config-file", config, "run", openapi, "--url", f"{base}/api/v1"]
        command += ["--warnings", "off"]
        command += sys.argv[4:]
        result = subprocess.run(command, env=environment, cwd=directory)
        if process.poll() is not None:
            raise SystemExit(f"sluice ended meanwhile: see {directory / 'sluice.log'}")
    finally:
        process.terminate()
        process.wait()
    sys.exit(result.returncode)


if __name__ == "__main__":
    main()
