#!/usr/bin/env python3
"""Makes a wheel that carries the binary of one platform, with nothing but the standard library:

    packaging/build-wheel.py --platform linux-x64 --binary PATH --out DIR [--tag TAG]

The binary is a script of the wheel, so `pip install` puts it on the path and `uvx toolgate` starts it, without Python in
between. A manylinux tag that promises an older glibc than the binary needs is refused. `--tag linux_x86_64` makes a wheel
for the machine it is made on.
"""

import argparse
import base64
import hashlib
import json
import os
import pathlib
import re
import subprocess
import sys
import time
import tomllib
import zipfile

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent
# The earliest time that a zip archive can tell: the same binary gives the same wheel.
EPOCH_MIN = 315532800


def main() -> None:
    platforms = json.loads((HERE / "platforms.json").read_text())
    parser = argparse.ArgumentParser()
    parser.add_argument("--platform", required=True, choices=platforms)
    parser.add_argument("--binary", required=True, type=pathlib.Path)
    parser.add_argument("--out", required=True, type=pathlib.Path)
    parser.add_argument("--tag", help="platform tag instead of that of platforms.json")
    asked = parser.parse_args()
    tag = asked.tag or platforms[asked.platform]["wheel"]
    check_glibc(asked.binary, tag)
    print(build(asked.binary, tag, asked.out))


def check_glibc(binary: pathlib.Path, tag: str) -> None:
    promised = re.match(r"manylinux_(\d+)_(\d+)_", tag)
    if promised is None:
        return
    promised = tuple(map(int, promised.groups()))
    told = subprocess.run(["readelf", "--version-info", "--wide", binary], check=True, capture_output=True, text=True).stdout
    versions = re.findall(r"\bGLIBC_(\d+)\.(\d+)", told)
    # A static binary needs none.
    needed = max(((int(major), int(minor)) for major, minor in versions), default=(0, 0))
    if needed > promised:
        sys.exit(
            f"error: {binary} needs glibc {needed[0]}.{needed[1]}, but the tag {tag} promises that "
            f"{promised[0]}.{promised[1]} is enough; build it on an older system"
        )


def build(binary: pathlib.Path, tag: str, out: pathlib.Path) -> pathlib.Path:
    version = python_version(tomllib.loads((ROOT / "Cargo.toml").read_text())["workspace"]["package"]["version"])
    name = f"toolgate-{version}"
    info = f"{name}.dist-info"
    files = [
        (f"{name}.data/scripts/toolgate", binary.read_bytes(), 0o755),
        (f"{info}/licenses/LICENSE", (ROOT / "LICENSE").read_bytes(), 0o644),
        (f"{info}/METADATA", metadata(version).encode(), 0o644),
        (
            f"{info}/WHEEL",
            f"Wheel-Version: 1.0\nGenerator: toolgate\nRoot-Is-Purelib: false\nTag: py3-none-{tag}\n".encode(),
            0o644,
        ),
    ]
    record = "".join(f"{path},{digest(content)},{len(content)}\n" for path, content, _ in files)
    files.append((f"{info}/RECORD", f"{record}{info}/RECORD,,\n".encode(), 0o644))
    out.mkdir(parents=True, exist_ok=True)
    wheel = out / f"{name}-py3-none-{tag}.whl"
    made = time.gmtime(max(EPOCH_MIN, int(os.environ.get("SOURCE_DATE_EPOCH", EPOCH_MIN))))[:6]
    with zipfile.ZipFile(wheel, "w", zipfile.ZIP_DEFLATED) as archive:
        for path, content, mode in files:
            entry = zipfile.ZipInfo(path, made)
            # A regular file; installers keep its mode.
            entry.external_attr = (0o100000 | mode) << 16
            entry.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(entry, content)
    return wheel


def metadata(version: str) -> str:
    return (
        f"Metadata-Version: 2.4\nName: toolgate\nVersion: {version}\n"
        "Summary: A durable server for AI agents and their tools.\n"
        "License-Expression: Apache-2.0\nLicense-File: LICENSE\nRequires-Python: >=3.8\n"
        "Description-Content-Type: text/markdown\n\n" + (HERE / "package-readme.md").read_text()
    )


def digest(content: bytes) -> str:
    return "sha256=" + base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()


def python_version(version: str) -> str:
    """The same version as Python writes it: 1.2.0-rc.1 is 1.2.0rc1 there."""
    parts = re.fullmatch(r"(\d+\.\d+\.\d+)(?:-(alpha|beta|rc)\.(\d+))?", version)
    if parts is None:
        sys.exit(f"error: version {version} has no form in Python; expected one like 1.2.0 or 1.2.0-rc.1")
    release, stage, number = parts.groups()
    return release if stage is None else release + {"alpha": "a", "beta": "b", "rc": "rc"}[stage] + number


if __name__ == "__main__":
    main()
