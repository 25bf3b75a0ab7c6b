"""Text and CPU of `harvest essence` beside kreuzberg and Apache Tika, on documents that others made.

Called by benches/essence, which says what it prints. The documents are in the sources of Debian packages, which
this program fetches into WORK, and in those of a crate that the build has fetched; kreuzberg and extractous (a build
of Tika) are from PyPI. One set of packages is worked on, the other is held aside: nobody has looked into its files.

Of the packages in HALVES, a hash says which of the files are in which set.

A file has text if it has a letter or digit besides names of its sheets and pictures, instructions of its fields,
headers of a message, numbers of notes, the header that each new sheet has, and the title of a page: Tika and
kreuzberg put some of these into the text, Harvest has them as attributes. What is no text at all (of more than a
tenth replacement, control and private characters) is not counted either: some files are encrypted. The time of a
row's first file is not counted: with it each program starts.
"""

import hashlib
import json
import os
import re
import resource
import select
import subprocess
import sys
import time
import unicodedata
from pathlib import Path
from urllib.parse import unquote

WORKED_ON = (
    "libapache-poi-java pdf.js python-docx python-pptx openpyxl pypdf tnef ytnef ruby-mail epubcheck kitinerary "
    "libmail-box-perl calibre fbreader"
).split()
HELD_ASIDE = "calligra gnumeric pikepdf python-pdfminer tracker-miners recoll libpst pandoc".split()
HALVES = ["libreoffice"]
CRATES_IN_HALVES = ["mail-parser"]
ROWS = {
    "docx": "docx docm dotx",
    "doc": "doc dot",
    "xlsx": "xlsx xlsm xltx",
    "xls": "xls xlt",
    "xlsb": "xlsb",
    "pptx": "pptx pptm ppsx",
    "ppt": "ppt pps",
    "rtf": "rtf",
    "odf": "odt ods odp odg ott fodt fods fodp",
    "epub": "epub",
    "msg": "msg",
    "eml": "eml",
    "html": "html htm xhtml",
    "pdf": "pdf",
}
ROW_OF = {ending: row for row, endings in ROWS.items() for ending in endings.split()}
# At most so many files of a row and set, by a hash of their content.
ROW_FILES_MAX = 300
FILE_BYTES_MAX = 32 << 20
# Seconds for one file.
FILE_SECONDS_MAX = 60

PEERS = {
    "kreuzberg": """
from kreuzberg import extract_file_sync
def text(path): return extract_file_sync(path).content
""",
    "tika": """
from extractous import Extractor
extractor = Extractor().set_extract_string_max_length(1 << 30)
def text(path): return extractor.extract_file_to_string(path)[0]
""",
}
LOOP = r"""
import json, resource, sys
def cpu():
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(it.ru_utime + it.ru_stime for it in used)
out = sys.stdout
sys.stdout = sys.stderr
print("ready", file=out, flush=True)
for line in sys.stdin:
    before = cpu()
    try: found = text(line.rstrip("\n"))
    except Exception: found = ""
    print(json.dumps([found, cpu() - before]), file=out, flush=True)
"""

NO_TEXT = re.compile(
    r"\[Image: [^\]]*\]|\bEMBED [\w.]+|^\s*[\w-]+\.(png|jpe?g|gif|emf|wmf|bmp|tiff?|bin|unknown)\s*$|^Notes:\s*\d+\s*$"
    r"|\?\?\?( \(\?\?\?\))?|^\s*[\d./]{10}, 00:00:00\s*$|^\s*(Page|Seite|Oldal)\s*/?\s*\d*\s*$",
    re.MULTILINE,
)
HEADERS = re.compile(r"^(Subject|From|To|Cc|Bcc|Date|Attachments?):.*$", re.MULTILINE)


def has_text(path, text, names):
    text = NO_TEXT.sub(" ", text)
    if ROW_OF[path.suffix[1:].lower()] in ("eml", "msg"):
        text = HEADERS.sub(" ", text)
    odd = sum(it == "\ufffd" or unicodedata.category(it) in ("Cc", "Co", "Cn") and not it.isspace() for it in text)
    lines = (it.strip(" \t\r#*") for it in text.split("\n"))
    return 10 * odd <= len(text) and any(it.isalnum() for line in lines if line not in names for it in line)


def run(*words, **options):
    subprocess.run(words, check=True, **options)


def fetch(work):
    """Fetches the sources of all packages, and unpacks their documents below WORK/files/PACKAGE."""
    lists = work / "apt"
    (lists / "lists/partial").mkdir(parents=True, exist_ok=True)
    (lists / "archives/partial").mkdir(parents=True, exist_ok=True)
    lines = subprocess.run(
        ["apt-get", "indextargets", "--format", "$(SITE) $(RELEASE) $(COMPONENT)", "Created-By: Packages"],
        check=True, capture_output=True, text=True,
    ).stdout.split("\n")
    sources = {
        f"deb-src {line}" for line in lines if line.endswith(" main")
    }
    (lists / "sources.list").write_text("\n".join(sorted(sources)) + "\n")
    (lists / "conf").write_text(
        f'Dir::Etc::sourcelist "{lists}/sources.list";\nDir::Etc::sourceparts "-";\n'
        f'Dir::State::lists "{lists}/lists";\nDir::Cache "{lists}";\n'
    )
    environment = {**os.environ, "APT_CONFIG": str(lists / "conf")}
    wanted = [it for it in WORKED_ON + HELD_ASIDE + HALVES if not (work / "files" / it / ".whole").exists()]
    if wanted:
        run("apt-get", "update", "-q", env=environment, stdout=sys.stderr)
    for package in wanted:
        archives, target = work / "archives" / package, work / "files" / package
        archives.mkdir(parents=True, exist_ok=True)
        print(f"fetching {package}", file=sys.stderr)
        words = ["apt-get", "source", "--download-only", "-qq", package]
        if subprocess.run(words, cwd=archives, env=environment, stdout=sys.stderr, check=False).returncode != 0:
            print(f"{package} is not to be had: its documents are left out", file=sys.stderr)
            continue
        target.mkdir(parents=True, exist_ok=True)
        for archive in sorted(archives.glob("*.orig.tar.*")):
            if not archive.name.endswith(".asc"):
                patterns = [f"*.{ending}" for ending in ROW_OF]
                # Exits with 2 if an archive has no such file.
                subprocess.run(
                    ["tar", "-xf", archive, "-C", target, "--wildcards", "--ignore-case", *patterns],
                    stderr=subprocess.DEVNULL, check=False,
                )
        (target / ".whole").touch()


def crates():
    """Returns the folders of the crates whose documents are taken."""
    words = ["cargo", "metadata", "--format-version", "1", "--locked"]
    packages = json.loads(subprocess.run(words, check=True, capture_output=True, text=True).stdout)["packages"]
    return [Path(it["manifest_path"]).parent for it in packages if it["name"] in CRATES_IN_HALVES]


def install(work):
    python = work / "venv/bin/python"
    if not (work / "venv/.whole").exists():
        run(sys.executable, "-m", "venv", work / "venv")
        run(python, "-m", "pip", "install", "-q", "kreuzberg", "extractous", stdout=sys.stderr)
        (work / "venv/.whole").touch()
    return python


def chosen(folders, halves, half):
    """Returns the files of each row, in the order of their hashes: different contents in `folders`, and those in
    `halves` whose hash has this parity."""
    rows = {row: {} for row in ROWS}
    for folder in folders + halves:
        for path in folder.rglob("*"):
            row = ROW_OF.get(path.suffix[1:].lower())
            if row and path.is_file() and not path.is_symlink() and 0 < path.stat().st_size <= FILE_BYTES_MAX:
                digest = hashlib.md5(path.read_bytes()).hexdigest()
                if folder in folders or int(digest, 16) % 2 == half:
                    rows[row][digest] = path
    return {row: [files[it] for it in sorted(files)[:ROW_FILES_MAX]] for row, files in rows.items()}


class Peer:
    """A peer in a process of its own, which is begun again after a crash or when time is up."""

    def __init__(self, python, name):
        self.python, self.name, self.process = python, name, None

    def line(self, seconds):
        ready, _, _ = select.select([self.process.stdout], [], [], seconds)
        return self.process.stdout.readline() if ready else None

    def begin(self):
        self.process = subprocess.Popen(
            [self.python, "-c", PEERS[self.name] + LOOP], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL, text=True,
        )
        if self.line(FILE_SECONDS_MAX) != "ready\n":
            sys.exit(f"{self.name} does not start: {self.python} -c 'import {self.name}'")

    def measure(self, path):
        """Returns the text and CPU seconds, or no text and `crash` or `time`."""
        if self.process is None:
            self.begin()
        try:
            self.process.stdin.write(f"{path}\n")
            self.process.stdin.flush()
            line = self.line(FILE_SECONDS_MAX)
        except BrokenPipeError:
            line = ""
        if line:
            return json.loads(line)
        self.process.kill()
        self.process.wait()
        self.process = None
        return "", "time" if line is None else "crash"

    def end(self):
        if self.process:
            self.process.stdin.close()
            self.process.wait()


def harvest(binary, config, files):
    """Returns by file the text and the names that are no text (of sheets, of the page), then all CPU seconds, and the
    problems that end a summary early."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(
        [binary, "essence", "summarize", "-c", config, "--to", "json", *files], capture_output=True, check=False
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    found, names = dict.fromkeys(files, ""), {path: [] for path in files}
    by_path = {str(path): path for path in files}
    for line in done.stdout.decode(errors="replace").splitlines():
        record = json.loads(line)
        path = by_path.get(unquote(record["url"].split("#")[0].removeprefix("file://")))
        values = dict((name, value) for name, value in record["attributes"] if isinstance(value, str))
        text = values.get("Full-Text") or values.get("Partial-Text") or ""
        if path:
            found[path] += text + "\n"
            names[path] += values.get("Sheets", "").splitlines()
            if ROW_OF[path.suffix[1:].lower()] == "html":
                names[path].append(values.get("Title", ""))
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    ended = [it for it in done.stderr.decode(errors="replace").splitlines() if "ended" in it or "failed on" in it]
    return found, names, cpu, ended


def row(binary, config, python, name, files):
    cells, texts = [], {}
    found, names, cpu, ended = harvest(binary, config, files)
    cpu -= harvest(binary, config, files[:1])[2]
    timed = max(1, len(files) - 1)
    texts["harvest"] = {path for path in files if has_text(path, found[path], names[path])}
    cells.append(f"{100 * len(texts['harvest']) / len(files):6.1f} {1000 * cpu / timed:8.1f} {len(ended):4}")
    for peer_name in PEERS:
        peer = Peer(python, peer_name)
        seen, cpu, bad = set(), 0.0, 0
        for path in files:
            text, seconds = peer.measure(path)
            if isinstance(seconds, str):
                bad += 1
            elif path != files[0]:
                cpu += seconds
            if has_text(path, text, names[path]):
                seen.add(path)
        peer.end()
        texts[peer_name] = seen
        cells.append(f"{100 * len(seen) / len(files):6.1f} {1000 * cpu / timed:8.1f} {bad:4}")
    print(f"{name:6} {len(files):5} | " + " | ".join(cells), flush=True)
    return [path for path in files if path not in texts["harvest"] and any(path in it for it in texts.values())]


def main():
    work, binary = Path(sys.argv[1]), sys.argv[2]
    only = sys.argv[3:] or list(ROWS)
    fetch(work)
    python = install(work)
    config = work / "gatherer.toml"
    config.write_text(
        f'name = "peers"\ndata = "{work}/data"\nfull_text = ["all"]\n'
        f'[[root]]\nurl = "{(work / "files").as_uri()}"\n'
    )
    files = work / "files"
    halves = [files / it for it in HALVES] + crates()
    sets = (("worked on", WORKED_ON, 0), ("held aside", HELD_ASIDE, 1))
    for title, packages, half in sets:
        print(f"\n{title}: share with text in %, CPU in ms a file, crashes and time-outs")
        print("row    files |      harvest         |      kreuzberg       |      tika", flush=True)
        for name, paths in chosen([files / it for it in packages], halves, half).items():
            if paths and name in only:
                missed = row(binary, config, python, name, paths)
                if title == "worked on":
                    for path in missed:
                        print(f"no text here, but elsewhere: {path}", file=sys.stderr)


if __name__ == "__main__":
    main()
