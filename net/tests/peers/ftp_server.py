"""Serves a folder by pyftpdlib, to anonymous users and to the user `reader` with the password `secret`.

Usage: ftp_server.py PORT FOLDER [CERTIFICATE KEY]; with a certificate, over TLS alone.
"""

import logging
import sys

from pyftpdlib.authorizers import DummyAuthorizer
from pyftpdlib.handlers import FTPHandler
from pyftpdlib.servers import FTPServer

port, folder, *files = sys.argv[1:]
authorizer = DummyAuthorizer()
authorizer.add_anonymous(folder)
authorizer.add_user("reader", "secret", folder)
handler = FTPHandler
if files:
    from pyftpdlib.handlers import TLS_FTPHandler

    handler = TLS_FTPHandler
    handler.certfile, handler.keyfile = files
    handler.tls_control_required = handler.tls_data_required = True
handler.authorizer = authorizer
handler.auth_failed_timeout = 0
logging.basicConfig(level=logging.ERROR)
FTPServer(("127.0.0.1", int(port)), handler).serve_forever()
