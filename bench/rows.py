"""What the scripts of this folder write: a CSV that grows, and a part of a page."""
import csv
import os


def read_rows(path):
    """Dictionaries; none if there is no such file."""
    if not os.path.exists(path):
        return []
    with open(path, newline="", encoding="utf-8") as f:
        return list(csv.DictReader(f))


class Rows:
    """A CSV of which a row is made once: a run that was stopped goes on. A row is known by its
    fields of key, as they are written; each is on disk before the next is made."""

    def __init__(self, path, fields, key):
        self.path, self.fields, self.key = path, fields, key

    def __enter__(self):
        rows = read_rows(self.path)
        self.done = {self.key_of(r) for r in rows}
        self.file = open(self.path, "a", newline="", encoding="utf-8")
        self.out = csv.DictWriter(self.file, self.fields, lineterminator="\n")
        if not rows:
            self.out.writeheader()
        return self

    def __exit__(self, *error):
        self.file.close()

    def key_of(self, row):
        return tuple(str(row[k]) for k in self.key)

    def has(self, **row):
        return self.key_of(row) in self.done

    def add(self, row):
        self.out.writerow(row)
        self.file.flush()
        print(row, flush=True)


def put_part(page, name, lines):
    """Lines in place of the part of a page between the marks of this name."""
    with open(page, encoding="utf-8") as f:
        text = f.read()
    begin, end = f"<!-- {name} -->\n", f"<!-- end of {name} -->"
    if begin not in text or end not in text:
        raise SystemExit(f"{page}: no marks {begin.strip()} and {end}")
    head, rest = text.split(begin, 1)
    with open(page, "w", encoding="utf-8") as f:
        f.write(head + begin + "\n".join(lines) + end + rest.split(end, 1)[1])
