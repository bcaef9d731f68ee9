"""MkDocs: small differences between GitHub's Markdown, in which the pages are written, and MkDocs' are bridged here.

Links to files outside docs/ lead to the repository. A list or table may follow a paragraph without an empty line.
"""
import os
import re

LINK = re.compile(r"(\]\()([^)#\s]+)((?:#[^)\s]*)?\))")


def on_page_markdown(markdown, page, config, **_):
    docs = config["docs_dir"]
    root = os.path.dirname(docs)
    here = os.path.dirname(os.path.join(docs, page.file.src_path))

    def lead(match):
        target = match.group(2)
        if "://" in target or target.startswith("mailto:"):
            return match.group()
        full = os.path.normpath(os.path.join(here, target))
        outside = not full.startswith(docs + os.sep) or os.path.isdir(full)
        if not outside or not os.path.exists(full):
            return match.group()
        kind = "tree" if os.path.isdir(full) else "blob"
        return f"{match.group(1)}{config['extra']['repository']}/{kind}/main/{os.path.relpath(full, root)}{match.group(3)}"

    return LINK.sub(lead, spaced(markdown))


def spaced(markdown):
    out, fenced = [], False
    for line in markdown.split("\n"):
        before = out[-1] if out else ""
        starts = re.match(r"(?:[-*]|\d+\.) |\|", line)
        follows = before.strip() and not re.match(r"\s*(?:[-*]|\d+\.) |\||\s|#|<!--", before)
        if not fenced and starts and follows:
            out.append("")
        if line.strip().startswith("```"):
            fenced = not fenced
            if fenced and before.strip() and not line.startswith(" "):
                out.append("")
        out.append(line)
    return "\n".join(out)
