"""Harvests a repository with a foreign library, and prints the results.

Usage: client.py sickle|oaipmh BASEURL, then a JSON object a line on standard input, such as
{"verb": "ListRecords", "metadataPrefix": "oai_dc", "from": "2026-01-31T12:00:00Z"}; each is answered
with a line on standard output: a list of objects, or {"error": CODE} for an error of the protocol.
"""

import json
import sys


def sickle(base_url):
    from sickle import Sickle, oaiexceptions

    client = Sickle(base_url, timeout=60)

    def header(it):
        return {
            "identifier": it.identifier,
            "datestamp": it.datestamp,
            "deleted": it.deleted,
            "sets": it.setSpecs,
        }

    def record(it):
        fields = {} if it.deleted else it.metadata
        return header(it.header) | {"fields": fields}

    shapes = {
        "ListRecords": record,
        "ListIdentifiers": header,
        "ListSets": lambda it: {"spec": it.setSpec, "name": it.setName},
        "ListMetadataFormats": lambda it: {"prefix": it.metadataPrefix, "namespace": it.metadataNamespace},
    }

    def ask(verb, arguments):
        try:
            if verb == "Identify":
                it = client.Identify()
                return [{
                    "name": it.repositoryName,
                    "url": it.baseURL,
                    "granularity": it.granularity,
                    "deleted": it.deletedRecord,
                    "earliest": it.earliestDatestamp,
                }]
            if verb == "GetRecord":
                return [record(client.GetRecord(**arguments))]
            return [shapes[verb](it) for it in getattr(client, verb)(**arguments)]
        except Exception as error:
            name = type(error).__name__
            # The library's errors have no common class.
            if not hasattr(oaiexceptions, name):
                raise
            return {"error": name[0].lower() + name[1:]}

    return ask


def oaipmh(base_url):
    from oaipmh import error
    from oaipmh.client import Client
    from oaipmh.datestamp import datestamp_to_datetime, datetime_to_datestamp
    from oaipmh.metadata import MetadataRegistry, oai_dc_reader

    registry = MetadataRegistry()
    registry.registerReader("oai_dc", oai_dc_reader)
    # This client sends POST requests.
    client = Client(base_url, registry)
    client.updateGranularity()

    def header(it):
        return {
            "identifier": it.identifier(),
            "datestamp": datetime_to_datestamp(it.datestamp()),
            "deleted": it.isDeleted(),
            "sets": it.setSpec(),
        }

    def record(it):
        head, metadata, _about = it
        fields = metadata.getMap() if metadata is not None else {}
        return header(head) | {"fields": {name: all for name, all in fields.items() if all}}

    verbs = {
        "ListRecords": (client.listRecords, record),
        "ListIdentifiers": (client.listIdentifiers, header),
        "ListSets": (client.listSets, lambda it: {"spec": it[0], "name": it[1]}),
        "ListMetadataFormats": (
            client.listMetadataFormats,
            lambda it: {"prefix": it[0], "namespace": it[2]},
        ),
    }

    def ask(verb, arguments):
        arguments = dict(arguments)
        for name, to in [("from", "from_"), ("until", "until")]:
            if name in arguments:
                arguments[to] = datestamp_to_datetime(arguments.pop(name))
        try:
            if verb == "Identify":
                it = client.identify()
                return [{
                    "name": it.repositoryName(),
                    "url": it.baseURL(),
                    "granularity": it.granularity(),
                    "deleted": it.deletedRecord(),
                    "earliest": datetime_to_datestamp(it.earliestDatestamp()),
                }]
            if verb == "GetRecord":
                return [record(client.getRecord(**arguments))]
            method, shape = verbs[verb]
            return [shape(it) for it in method(**arguments)]
        except error.ErrorBase as problem:
            return {"error": problem.oainame()}

    return ask


def main():
    name, base_url = sys.argv[1:]
    ask = {"sickle": sickle, "oaipmh": oaipmh}[name](base_url)
    for line in sys.stdin:
        arguments = json.loads(line)
        verb = arguments.pop("verb")
        print(json.dumps(ask(verb, arguments)), flush=True)


main()
