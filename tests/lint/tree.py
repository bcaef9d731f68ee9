"""The files of the tree that lints read: tracked and new ones, never what git ignores."""
import os
import subprocess

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
# Recorded or generated data. Nobody writes prose there; READMEs in these folders are read all the same.
DATA = ("tests/data/", "tests/golden/", "tests/fuzz/corpus/", "localcluster/apiserver/schemas/", "examples/data/",
        "charts/medley/dashboards/")
SUFFIXES = (".cc", ".css", ".cmake", ".h", ".html", ".in", ".js", ".lua", ".md", ".proto", ".py", ".sh", ".tpl", ".txt",
            ".yaml", ".yml")


def all_files():
    """Paths below ROOT, sorted. A link is no file: its target is listed where it lies."""
    listed = subprocess.run(["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"], cwd=ROOT,
                            capture_output=True, text=True, check=True).stdout
    return sorted(path for path in set(listed.split("\0")) if path and os.path.isfile(os.path.join(ROOT, path))
                  and not os.path.islink(os.path.join(ROOT, path)))


def read(path):
    with open(os.path.join(ROOT, path), encoding="utf-8") as file:
        return file.read()


def is_script(path):
    if "." in os.path.basename(path).lstrip("."):
        return False
    with open(os.path.join(ROOT, path), "rb") as file:
        return file.read(2) == b"#!"


def text_files():
    """Files that people write and read: sources, scripts, pages, manifests."""
    names = ("CMakeLists.txt", "Dockerfile", "NOTICE", "dev")
    return [path for path in all_files()
            if (path.endswith(SUFFIXES) or os.path.basename(path) in names or is_script(path))
            and (path.endswith(".md") or not path.startswith(DATA))]
