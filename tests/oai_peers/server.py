"""A repository of the oaipmh package, to be harvested by our harvester.

It has 1,000 records in two sets, an hour between their datestamps, and pages of a hundred. Usage:
server.py; it prints its base URL, then reads commands from standard input and answers each with a line:

    delete      deletes 50 records, with the present datestamp
    change      gives 50 others a new title, with the present datestamp

It ends at the end of the input.
"""

import datetime
import http.server
import json
import sys
import threading
import urllib.parse

from oaipmh import common, error
from oaipmh.metadata import MetadataRegistry
from oaipmh.server import BatchingServer, oai_dc_writer

RECORDS = 1000
PAGE = 100
START = datetime.datetime(2024, 1, 1)


def now():
    return datetime.datetime.now(datetime.timezone.utc).replace(microsecond=0, tzinfo=None)


class Item:
    def __init__(self, number):
        self.number = number
        self.title = f"Field notes {number}: rivers & «fords» <north>"
        self.stamp = START + datetime.timedelta(hours=number)
        self.deleted = False

    def header(self):
        sets = ["maps"] if self.number % 4 == 0 else ["texts", "texts:long"]
        return common.Header(None, f"oai:peer.example:{self.number}", self.stamp, sets, self.deleted)

    def record(self):
        if self.deleted:
            return self.header(), None, None
        fields = {
            "title": [self.title],
            "creator": [f"Writer {self.number % 17}", "Second Author"],
            "subject": ["hydrology"],
            "date": [f"{1900 + self.number % 100}"],
            "identifier": [f"http://peer.example/items/{self.number}"],
            "language": ["eng"],
        }
        return self.header(), common.Metadata(None, fields), None


class Repository:
    def __init__(self):
        self.items = [Item(number) for number in range(RECORDS)]
        self.base_url = None

    def identify(self):
        return common.Identify(
            "Peer", self.base_url, "2.0", ["admin@peer.example"], START, "persistent",
            "YYYY-MM-DDThh:mm:ssZ", ["identity"],
        )

    def listMetadataFormats(self, identifier=None):
        return [(
            "oai_dc",
            "http://www.openarchives.org/OAI/2.0/oai_dc.xsd",
            "http://www.openarchives.org/OAI/2.0/oai_dc/",
        )]

    def listSets(self, cursor=0, batch_size=PAGE):
        sets = [("maps", "Maps", None), ("texts", "Texts", None), ("texts:long", "Long texts", None)]
        return sets[cursor:cursor + batch_size]

    def getRecord(self, metadataPrefix, identifier):
        for item in self.items:
            if item.header().identifier() == identifier:
                return item.record()
        raise error.IdDoesNotExistError(identifier)

    def selected(self, set, from_, until, cursor, batch_size):
        def fits(item):
            return (
                (set is None or set in item.header().setSpec())
                and (from_ is None or from_ <= item.stamp)
                and (until is None or item.stamp <= until)
            )

        all = sorted(filter(fits, self.items), key=lambda it: (it.stamp, it.number))
        return all[cursor:cursor + batch_size]

    def listRecords(self, metadataPrefix, set=None, from_=None, until=None, cursor=0, batch_size=PAGE):
        if metadataPrefix != "oai_dc":
            raise error.CannotDisseminateFormatError(metadataPrefix)
        return [it.record() for it in self.selected(set, from_, until, cursor, batch_size)]

    def listIdentifiers(self, metadataPrefix, set=None, from_=None, until=None, cursor=0, batch_size=PAGE):
        return [it.header() for it in self.selected(set, from_, until, cursor, batch_size)]


def main():
    registry = MetadataRegistry()
    registry.registerWriter("oai_dc", oai_dc_writer)
    repository = Repository()
    server = BatchingServer(repository, registry, resumption_batch_size=PAGE)

    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self):
            self.answer(urllib.parse.urlsplit(self.path).query)

        def do_POST(self):
            self.answer(self.rfile.read(int(self.headers["Content-Length"])).decode())

        def answer(self, query):
            body = server.handleRequest(dict(urllib.parse.parse_qsl(query)))
            self.send_response(200)
            self.send_header("Content-Type", "text/xml; charset=utf-8")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_):
            pass

    web = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    web.daemon_threads = True
    repository.base_url = f"http://127.0.0.1:{web.server_port}/oai"
    threading.Thread(target=web.serve_forever, daemon=True).start()
    print(repository.base_url, flush=True)
    for line in sys.stdin:
        if line.strip() == "delete":
            for item in repository.items[::20]:
                item.deleted, item.stamp = True, now()
        elif line.strip() == "change":
            for item in repository.items[7::20]:
                item.title, item.stamp = f"Revised notes {item.number}", now()
        print("done", flush=True)
    # The end of the input.
    web.shutdown()


main()
