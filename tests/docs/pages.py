"""Pages of the tree as data: headings, links, fenced blocks and the comments that say how a block is tested.

Directly above a block, one a line:
    <!-- not run: REASON -->      the commands cannot be run by a test, for this reason
    <!-- exit status: N -->       the last command ends with N
    <!-- file: NAME -->           the page tells its reader to save the block as NAME
    <!-- prints: TEXT -->         the commands print TEXT
    <!-- within: SECONDS -->      they may take so long; LIMIT is what a block has otherwise
"""
import os
import re
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "tests", "lint"))

import check_references  # noqa: E402
import tree  # noqa: E402

COMMANDS = ("sh", "console")
LIMIT = 120
DIRECTIVE = re.compile(r"^<!-- (not run|exit status|file|prints|within): (.+?) -->$")


class Block:
    """A fenced block. `line` is that of its opening fence."""

    def __init__(self, line, language, text, directives):
        self.line, self.language, self.text = line, language, text
        self.not_run = next((value for key, value in directives if key == "not run"), None)
        self.file = next((value for key, value in directives if key == "file"), None)
        self.prints = [value for key, value in directives if key == "prints"]
        self.exit_status = int(next((value for key, value in directives if key == "exit status"), 0))
        self.within = float(next((value for key, value in directives if key == "within"), LIMIT))

    def is_commands(self):
        return self.language in COMMANDS

    def script(self):
        """The commands; of a console block the lines after the prompt."""
        if self.language == "sh":
            return self.text
        return "".join(line[2:] for line in self.text.splitlines(keepends=True) if line.startswith("$ "))


class Page:
    def __init__(self, path):
        self.path = path
        self.text = tree.read(path)
        self.blocks, self.indented = [], []
        self.prose = self._read()

    def _read(self):
        """Fills blocks and indented; the text without them, with as many lines."""
        out, directives, fence, body, start = [], [], None, [], 0
        listed = blank = False
        for number, line in enumerate(self.text.splitlines(), 1):
            stripped = line.strip()
            if fence:
                out.append("")
                if stripped == fence[0]:
                    self.blocks.append(Block(start, fence[1], "".join(body), directives))
                    fence, directives = None, []
                else:
                    body.append(line[fence[2]:] + "\n" if line[:fence[2]].strip() == "" else line + "\n")
                continue
            opened = re.match(r"^( *)(```+)(\w*)\s*$", line)
            if opened:
                fence, body, start = (opened.group(2), opened.group(3), len(opened.group(1))), [], number
                out.append("")
                continue
            said = DIRECTIVE.match(stripped)
            if said:
                directives.append((said.group(1), said.group(2)))
            elif stripped:
                directives = []
            if re.match(r"^\s*([-*]|\d+\.) ", line):
                listed = True
            elif stripped and not line.startswith(" "):
                listed = False
            if blank and not listed and re.match(r"^    \S", line):
                self.indented.append(number)
            blank = not stripped or stripped.startswith("#")
            out.append(line)
        return "\n".join(out)

    def anchors(self):
        found, seen = [], {}
        for heading in check_references.headings(self.text):
            anchor = check_references.anchor_of(heading)
            count = seen.get(anchor, 0)
            seen[anchor] = count + 1
            found.append(anchor if count == 0 else f"{anchor}_{count}")
        return found

    def links(self):
        """[(line number, target)] of links and images."""
        bare = re.sub(r"`[^`\n]*`", lambda m: " " * len(m.group()), self.prose)
        return [(bare[:match.start()].count("\n") + 1, match.group(1))
                for match in re.finditer(r"!?\[[^\]]*\]\(([^)\s]+)\)", bare)]


def order_of_use():
    """Pages of docs/use as the site's navigation has them."""
    return ["docs/" + name for name in re.findall(r"^\s+- (use/[\w-]+\.md)$", tree.read("mkdocs.yml"), re.M)]


def written_pages():
    """Pages whose command blocks are tested: those of docs/, README.md and CONTRIBUTING.md."""
    return [path for path in tree.text_files()
            if path.endswith(".md") and (path.startswith("docs/") or path in ("README.md", "CONTRIBUTING.md"))]
