"""An S3 server on loopback with a bucket."""

import atexit
import os
import subprocess
import sys
from pathlib import Path

import weir

server = subprocess.Popen(
    [sys.executable, Path(weir.__file__).parents[2] / "tests" / "s3_server.py", "0"],
    stdout=subprocess.PIPE,
    stderr=subprocess.DEVNULL,
    text=True,
)
atexit.register(server.kill)
os.environ |= {
    "AWS_ENDPOINT_URL": f"http://127.0.0.1:{server.stdout.readline().strip()}",
    "AWS_ACCESS_KEY_ID": "testing",
    "AWS_SECRET_ACCESS_KEY": "testing",
    "AWS_DEFAULT_REGION": "us-east-1",
}

import s3fs

s3fs.S3FileSystem().mkdir("bucket")
