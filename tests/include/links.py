#!/usr/bin/env python3
"""Each file that a document or a comment names is there.

    links.py SOURCE

In *.md: link targets, and words in backticks that look like a path or a source file. In sources:
words that begin with a folder of the repository and end like a source file, and documents (*.md).
A name without a folder is that of a file beside the document, or of one anywhere in the tree.
"""
import os
import re
import sys

ENDS = "(c|h|md|sh|def|py|cmake|awk|svg|patch|conf)"
# What stands for other names, and what a build makes.
STANDS_FOR_OTHERS = re.compile(r"NAME|UNIT|METHOD|TYPE|COMMAND|OUT|PREFIX|[*<{]|^build(-[a-z]+)?/")


def tree(top):
    files = []
    for folder, folders, names in os.walk(top):
        folders[:] = [f for f in folders if f != ".git" and not f.startswith("build")]
        files += [os.path.relpath(os.path.join(folder, n), top) for n in names
                  if n != ".git" and not n.startswith("build")]
    return sorted(files)


def is_source(file):
    return (file.endswith((".c", ".h", ".def", ".sh", ".cmake", ".py", "CMakeLists.txt"))
            or file.startswith(("scripts/", "tests/mutations/")))


def made_by_a_command(word, text):
    """A command of the document writes it."""
    return re.search(rf"^    .*(-o|--report) {re.escape(word)}( |$)", text, re.M)


def names_in(file, text, folders):
    """Words of a file that have to be names of files."""
    if file.endswith(".md"):
        words = {w for w in re.findall(r"\]\(([^) \n]+)\)", text) if not re.match("[a-z]+:", w)}
        looks = re.compile(rf"(({folders})/|[A-Za-z0-9_./-]+\.{ENDS}$)")
        quoted = {w for w in re.findall(r"`([^` \n]+)`", text)
                  if looks.match(w) and not re.match(rf"\.{ENDS}$", w)}
    else:
        words = set()
        before = r"(?:^|(?<=[^A-Za-z0-9_./$}-]))"
        found = re.compile(rf"{before}(?:((?:{folders})/[A-Za-z0-9_./-]*\.{ENDS}\b(?:\.in)?)"
                           r"|([A-Za-z_-]+\.md\b))", re.M)
        quoted = {m.group(1) or m.group(3) for m in found.finditer(text)}
    return words | {w for w in quoted
                    if not STANDS_FOR_OTHERS.search(w) and not made_by_a_command(w, text)}


def main():
    os.chdir(sys.argv[1])
    files = tree(".")
    names = {os.path.basename(f) for f in files}
    folders = "|".join(sorted(f for f in os.listdir(".") if os.path.isdir(f)
                              and not f.startswith((".", "build"))))
    passed = failed = 0
    for file in files:
        # The tests of the tools name files that they make.
        if not file.endswith(".md") and (file.startswith("tests/tools/") or not is_source(file)):
            continue
        with open(file, encoding="utf-8", errors="replace") as f:
            text = f.read()
        for word in sorted(names_in(file, text, folders)):
            name = word.partition("#")[0]
            beside = os.path.join(os.path.dirname(file), name)
            if (not name or name in names or os.path.exists(name) or os.path.exists(beside)
                    or os.path.exists(f"include/{name}")):
                passed += 1
            else:
                print(f"links: {file} names '{word}', which is not in the repository")
                failed += 1
    if passed <= 200:
        print(f"links: only {passed} names were found")
        failed += 1
    print(f"{passed} passed, {failed} failed")
    sys.exit(failed > 0)


if __name__ == "__main__":
    main()
