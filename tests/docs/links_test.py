#!/usr/bin/env python3
"""Links and command blocks of all pages (docs_links_test, and a lint).

- Every link of every page and README leads to a file, a folder or a heading of the tree, or to another host.
- Every block of docs/, README.md and CONTRIBUTING.md is fenced and has a language. A block of commands is run by
  docs_use_test or has `<!-- not run: REASON -->` above it. Only pages that docs_use_test runs may have the former.
- mkdocs.yml names every page once, and docs/index.md links every page but the decisions, which docs/adr/README.md lists.
- Each page of a paper has a section about what is missing.
"""
import os
import re
import sys

import pages
import tree


def check_links(page, cache):
    for line, target in page.links():
        if re.match(r"[a-z]+:", target):
            continue
        path, _, anchor = target.partition("#")
        full = os.path.normpath(os.path.join(os.path.dirname(page.path), path)) if path else page.path
        if not os.path.exists(os.path.join(tree.ROOT, full)):
            yield f"{page.path}:{line}: the link leads to {full}, which does not exist"
        elif anchor and full.endswith(".md"):
            if full not in cache:
                cache[full] = pages.Page(full).anchors()
            if anchor not in cache[full]:
                yield f"{page.path}:{line}: {full} has no heading for #{anchor}"


def check_blocks(page):
    for line in page.indented:
        yield f"{page.path}:{line}: an indented block: fence it, so that it has a language and can be tested"
    for block in page.blocks:
        where = f"{page.path}:{block.line}"
        if not block.language:
            yield f"{where}: a block without a language (sh for commands, text for output)"
        if block.not_run is not None and len(block.not_run.split()) < 3:
            yield f"{where}: 'not run' needs a reason that a reader understands"
        if block.not_run is not None and not block.is_commands():
            yield f"{where}: 'not run' above a block that holds no commands"
        if block.file and f"`{block.file}`" not in page.prose:
            yield f"{where}: the page does not say that the block is to be saved as `{block.file}`"
        if block.is_commands() and block.not_run is None and not page.path.startswith(("docs/use/", "docs/design/")):
            yield f"{where}: say '<!-- not run: REASON -->' above the commands; only docs/use and docs/design are run"
        if block.language == "console" and not block.script():
            yield f"{where}: a console block without a line that begins with '$ '"


def check_navigation():
    named = re.findall(r"[\s-]((?:[\w-]+/)*[\w.-]+\.md)\s*$", tree.read("mkdocs.yml"), re.M)
    have = [path[len("docs/"):] for path in tree.all_files() if path.startswith("docs/") and path.endswith(".md")]
    for name in sorted(set(have) - set(named)):
        yield f"mkdocs.yml: docs/{name} is missing from the navigation"
    for name in sorted({name for name in named if named.count(name) > 1 or name not in have}):
        yield f"mkdocs.yml: docs/{name} is named twice or does not exist"


def check_index():
    index = "docs/index.md"
    linked = {os.path.normpath(os.path.join("docs", target.partition("#")[0])) for _, target in pages.Page(index).links()}
    for path in tree.all_files():
        if path.startswith("docs/") and path.endswith(".md") and path not in linked | {index}:
            if not re.match(r"docs/adr/\d{4}-", path):
                yield f"{index}: lists all pages, but not {path}"


def check_papers():
    """A page of a paper says what is missing."""
    for path in tree.all_files():
        if path in ("docs/graph-planning.md", "docs/design/planning-paper.md") or re.match(r"docs/papers/[^/]+\.md$", path):
            if "missing" not in pages.Page(path).anchors():
                yield f"{path}: a page of a paper ends with '## Missing'"


def main():
    problems, cache, count, run, marked = [], {}, 0, 0, 0
    written = pages.written_pages()
    for path in [p for p in tree.text_files() if p.endswith(".md")]:
        page = pages.Page(path)
        count += 1
        problems += check_links(page, cache)
        if path in written:
            problems += check_blocks(page)
            commands = [block for block in page.blocks if block.is_commands()]
            marked += sum(block.not_run is not None for block in commands)
            run += sum(block.not_run is None for block in commands)
    problems += [*check_navigation(), *check_index(), *check_papers()]
    print("\n".join(problems + [f"links_test: {count} pages, {run} command blocks that docs_use_test runs, "
                                f"{marked} marked as not run, {len(problems)} problems"]))
    return 1 if problems or run == 0 else 0


if __name__ == "__main__":
    sys.exit(main())
