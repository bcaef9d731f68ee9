#!/usr/bin/env python3
"""Words that docs/glossary.md's second table replaces: they may stand in no comment, string, name, page or manifest.

    tests/lint/check_words.py            every hit, and how many each top folder has
    tests/lint/check_words.py --count    only the numbers
    tests/lint/check_words.py FOLDER...  only files below these folders

Of C++, proto and Python files it reads comments, strings and names with a capital letter or a trailing underscore, that
is, all but local names; of other files everything. Names are split first: `kPoolGone` and `gone_` hold the word "gone".
Besides words it knows two shapes of bad English. The name of a test says what happens in a sentence: `DisruptionsAreNotFailures`
and `RefusesInvalidDates`, not `DisruptionsAreNoFailures` or `DatesThatAreNone`. A comment does not begin with "Of" but says whose or
for what, with its subject: "For a job without a plan: ...", "The size of ...".

words_allowed.txt beside this file lists the exceptions, such as HTTP's "410 Gone"; an exception that matches nothing is
a problem as well.
"""
import fnmatch
import io
import os
import re
import sys
import tokenize

import tree

GLOSSARY = "docs/glossary.md"
ALLOWED = "tests/lint/words_allowed.txt"
HEADING = "## Words that are not used"
# Where the first letter of a new word begins inside a name: fooBar, HTTPServer, foo_bar.
INSIDE_NAMES = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])|_")
# A phrase counts only without these words before it: "null if there is none" is plain English, "the answer is none" is
# not.
BEFORE = {"is none": r"(?<!there )(?<!there  )"}
COMMENT_MARK = re.compile(r"^\s*(//+|#+|\*|--)?\s*")
# Comments and literals of C++; what is between them is code.
CXX_TEXT = re.compile(r'//[^\n]*|/\*.*?\*/|R"([^(\s"]*)\(.*?\)\1"|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])\'', re.S)
CXX_NAME = re.compile(r"\b(?:\w*[A-Z]\w*|[a-z]\w*_)\b")


# A predicate "no X" or "none", a relative clause that ends in the air, and "what no ...": fragments, not sentences.
BAD_NAME = re.compile(r"(?<!There)(?:Is|Are)No(?:ne(?![a-z])|(?!t|w|ne|Longer|Worse)(?=[A-Z]))|WhatNo[A-Z]|That(?:Is|Are|Can)Not(?:Be)?$|ThatCannotBe$")
TEST_NAME = re.compile(r"^\s*(?:TEST(?:_F|_P)?\(\w+, (\w+)\)|def (test_\w+)\()")
FRAGMENT = re.compile(r"^\s*(?://+|#) Of ")
INSIDE_COMMENT = re.compile(r"^\s*(?://|#).*[^.:;]$")  # the next line of the comment continues its sentence


def shapes(path, text):
    """Yields (line number, what is wrong) for names of tests and beginnings of comments."""
    before = ""
    for number, line in enumerate(text.split("\n"), 1):
        name = TEST_NAME.match(line)
        if name and BAD_NAME.search(re.sub(r"_(\w)", lambda m: m.group(1).upper(), name.group(1) or name.group(2))):
            yield number, f"the name {name.group(1) or name.group(2)} is no sentence: say what happens, as RefusesInvalidDates"
        if not path.endswith(".md") and FRAGMENT.match(line) and not INSIDE_COMMENT.match(before):
            yield number, "a comment that begins with 'Of': say whose or for what, with the subject: " + line.strip()[:80]
        before = line


def readable(path, text):
    """The text without what is not read: of C++ and proto files, names of local variables and keywords."""
    if path.endswith(".py"):
        return readable_python(text)
    if not path.endswith((".h", ".cc", ".proto", ".in")):
        return text
    out, end = [], 0
    for match in [*CXX_TEXT.finditer(text), None]:
        code = text[end:match.start() if match else len(text)]
        names = re.sub(r"[^\n]", " ", code)
        for name in CXX_NAME.finditer(code):
            names = names[:name.start()] + name.group() + names[name.end():]
        out.append(names)
        if match:
            out.append(match.group())
            end = match.end()
    return "".join(out)


def readable_python(text):
    rows = [[" "] * len(line) for line in text.split("\n")]
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type not in (tokenize.COMMENT, tokenize.STRING) and not CXX_NAME.fullmatch(token.string):
            continue
        row, column = token.start
        for offset, line in enumerate(token.string.split("\n")):
            start = column if offset == 0 else 0
            rows[row - 1 + offset][start:start + len(line)] = line
    return "\n".join("".join(row) for row in rows)


def unused_words(page):
    """{word or phrase: what to write}, from the table. Brackets explain, commas separate."""
    words = {}
    for line in page[page.index(HEADING):].splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if not line.startswith("|") or len(cells) != 2 or cells[0] == "not" or set(cells[0]) <= {"-"}:
            continue
        for word in re.sub(r"\([^)]*\)", "", cells[0]).split(","):
            words[word.strip()] = cells[1]
    return words


def pattern_of(words):
    """Matches a word with its usual endings, and a phrase as it is."""
    parts = [BEFORE.get(word, "") + r"\s+".join(map(re.escape, word.split())) if " " in word
             else re.escape(word) + "(?:s|es|ed|ing)?" for word in sorted(words, key=len, reverse=True)]
    return re.compile(r"\b(" + "|".join(parts) + r")\b", re.I)


class Sieve:
    """Says of most texts, as they are, that pattern_of can match nothing in what is read of them: much faster than to look."""

    def __init__(self, words):
        self.words = []
        for word in words:
            first, *others = word.lower().split()
            rest = "".join(rf"[\W_]*(?i:{re.escape(other)})" for other in others)
            beginnings = (f"(?<![A-Za-z]){re.escape(first)}", re.escape(first.capitalize()), re.escape(first.upper()))
            self.words.append(([first, *others], re.compile("|".join(beginning + rest for beginning in beginnings))))

    def may_match(self, text):
        low = text.lower()
        return any(all(part in low for part in parts) and coarse.search(text) for parts, coarse in self.words)


def plain(line):
    return INSIDE_NAMES.sub(" ", line)


def base_word(found, words):
    """The table's word that `found` is a form of."""
    found = " ".join(found.lower().split())
    fits = [word for word in words if found == word or (" " not in word and found.startswith(word))]
    return max(fits, key=len)


def hits(text, pattern):
    """Yields (line number, word found). A phrase may continue on the next line."""
    lines = text.split("\n")
    for number, line in enumerate(lines, 1):
        own = plain(line)
        following = COMMENT_MARK.sub("", plain(lines[number])) if number < len(lines) else ""
        joined = own.rstrip() + " " + following
        found = {match.group(1) for match in pattern.finditer(joined) if match.start() < len(own.rstrip())}
        for word in found - {"is None", "Is None"}:  # Python's operator, and assertIsNone
            yield number, word


class Exceptions:
    """Rows `word | path pattern | regular expression of the line | reason`."""

    def __init__(self, text):
        self.rows, self.used, self.problems = [], set(), []
        for number, line in enumerate(text.splitlines(), 1):
            if not line.strip() or line.startswith("#"):
                continue
            cells = [cell.strip() for cell in re.split(r" \| ", line)]
            if len(cells) != 4 or not cells[3]:
                self.problems.append(f"{ALLOWED}:{number}: not 'word | path | expression | reason'")
                continue
            self.rows.append((number, cells[0], cells[1], re.compile(cells[2])))

    def allow(self, word, path, line):
        for number, allowed, glob, expression in self.rows:
            if allowed == word and fnmatch.fnmatch(path, glob) and expression.search(line):
                self.used.add(number)
                return True
        return False

    def unused(self):
        return [f"{ALLOWED}:{number}: nothing matches this exception any more" for number, *_ in self.rows
                if number not in self.used]


def main():
    arguments = [a for a in sys.argv[1:] if a != "--count"]
    page = tree.read(GLOSSARY)
    words = unused_words(page)
    if len(words) < 10:
        print(f"{GLOSSARY}: the table below '{HEADING}' has {len(words)} words; is it still a table?")
        return 1
    pattern, sieve = pattern_of(words), Sieve(words)
    exceptions = Exceptions(tree.read(ALLOWED))
    counts, problems = {}, []
    for path in tree.text_files():
        if arguments and not path.startswith(tuple(arguments)):
            continue
        if path == ALLOWED:
            continue
        text = tree.read(path)
        if path == GLOSSARY:
            text = text[:text.index(HEADING)]
        lines = text.split("\n")
        for number, found in hits(readable(path, text), pattern) if sieve.may_match(text) else ():
            word = base_word(found, words)
            line = lines[number - 1].strip()
            if exceptions.allow(word, path, line):
                continue
            folder = path.split("/")[0] if "/" in path else "(top)"
            counts[folder] = counts.get(folder, 0) + 1
            problems.append(f"{path}:{number}: '{found}': write {words[word]}: {line[:100]}")
        for number, wrong in shapes(path, text):
            folder = path.split("/")[0] if "/" in path else "(top)"
            counts[folder] = counts.get(folder, 0) + 1
            problems.append(f"{path}:{number}: {wrong}")
    if not arguments:
        problems += exceptions.problems + exceptions.unused()
    if "--count" not in sys.argv[1:]:
        print("\n".join(problems))
    for folder, count in sorted(counts.items(), key=lambda item: -item[1]):
        print(f"{count:6} {folder}")
    print(f"check_words: {len(words)} words, {len(problems)} problems")
    return 1 if problems else 0


if __name__ == "__main__":
    os.chdir(tree.ROOT)
    sys.exit(main())
