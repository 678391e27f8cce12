"""moto's S3 server on loopback: one request at a time, so that its conditional writes are atomic as those of S3 are.

python tests/s3_server.py SECONDS [unconditional]: SECONDS is added to its clock; unconditional: If-None-Match is ignored.
Prints its port.
"""

from __future__ import annotations

import sys
from datetime import timedelta

import moto.s3.models
from moto.moto_server.werkzeug_app import DomainDispatcherApplication, MotoRequestHandler, create_backend_app
from werkzeug.serving import make_server


def main(seconds: str, *kind: str) -> None:
    now = moto.s3.models.utcnow
    moto.s3.models.utcnow = lambda: now() + timedelta(seconds=float(seconds))
    application = DomainDispatcherApplication(create_backend_app)

    def served(environ, start_response):
        if "unconditional" in kind:
            environ.pop("HTTP_IF_NONE_MATCH", None)
        return application(environ, start_response)

    server = make_server("127.0.0.1", 0, served, threaded=False, request_handler=MotoRequestHandler)
    print(server.server_port, flush=True)
    server.serve_forever()


if __name__ == "__main__":
    main(*sys.argv[1:])
