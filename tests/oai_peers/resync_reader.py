"""Reads the ResourceSync documents of a site with the library `resync`.

Usage: resync_reader.py ROOT. It reads the source description at the well-known URL below ROOT, the capability list,
and the lists; prints them as JSON: {"resources": {URL: MD5}, "changes": [[URL, CHANGE, DATETIME], …]}.
"""

import json
import sys

from resync.capability_list import CapabilityList
from resync.change_list import ChangeList
from resync.resource_list import ResourceList
from resync.source_description import SourceDescription


def read(kind, uri):
    document = kind()
    document.read(uri)
    return document


def listed(kind, uri):
    """Returns the entries of a list, or of all its parts if it is an index."""
    document = read(kind, uri)
    if document.sitemapindex:
        return [entry for part in document for entry in read(kind, part.uri)]
    return list(document)


root = sys.argv[1]
description = read(SourceDescription, root + ".well-known/resourcesync")
[capability_list] = [it.uri for it in description]
capabilities = {it.capability: it.uri for it in read(CapabilityList, capability_list)}
resources = listed(ResourceList, capabilities["resourcelist"])
changes = listed(ChangeList, capabilities["changelist"])
print(
    json.dumps(
        {
            "resources": {it.uri: it.md5 for it in resources},
            "changes": [[it.uri, it.change, it.lastmod] for it in changes],
        }
    )
)
