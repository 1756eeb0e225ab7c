"""Records from Parquet and Excel, texts as Parquet.

    pip install dpinfer pandas pyarrow openpyxl
    python parquet_excel.py [FOLDER]

Writes letters.parquet and letters.xlsx with made-up letters into FOLDER (default: a new one), reads
them as their owner would, and releases texts from each; the texts are texts.parquet. dpinfer has no
reader of its own for these: any table in Python's memory is good enough.
"""

import json
import pathlib
import sys
import tempfile

import dpinfer
import pandas as pd
import pyarrow.parquet

LETTERS = pathlib.Path(__file__).resolve().parent.parent / "discharge.jsonl"


def make_files(folder):
    """The same letters in both forms, with a patient's ID that has gaps, as tables often do."""
    rows = [json.loads(line) for line in LETTERS.read_text("utf-8").splitlines()[:96]]
    table = pd.DataFrame({"letter": [row["text"] for row in rows],
                          "patient": [i // 2 if i % 31 else None for i in range(len(rows))]})
    table.to_parquet(folder / "letters.parquet", index=False)
    table.to_excel(folder / "letters.xlsx", index=False)


def release(model, records):
    """Two texts from the letters of 24 patients each."""
    return dpinfer.run(model, records, text="letter", unit="patient", epsilon=8, delta=1e-4,
                       batch=24, texts=2, tokens=60, tau=0.8,
                       public_prompt="Write hospital discharge instructions.")


def main():
    folder = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else tempfile.mkdtemp())
    make_files(folder)
    model = dpinfer.Model.builtin()

    # Only the wanted columns are read from the file, and no other leaves it.
    wanted = ["letter", "patient"]
    from_parquet = release(model, pyarrow.parquet.read_table(folder / "letters.parquet",
                                                             columns=wanted))
    from_excel = release(model, pd.read_excel(folder / "letters.xlsx", usecols=wanted))

    # to_arrow() has types that do not depend on what is in it: also without a text or a label.
    pyarrow.parquet.write_table(from_parquet.to_arrow(), folder / "texts.parquet")
    from_parquet.report.save(folder / "texts.report.json")
    for text in pd.read_parquet(folder / "texts.parquet")["text"]:
        print(text, end="\n\n")
    print(f"from Parquet: {from_parquet.claim.guarantee}")
    print(f"from Excel:   {from_excel.claim.guarantee}")
    print("both read the same letters, so what they cost adds up: a Ledger counts that")
    print(f"written: {folder}")


if __name__ == "__main__":
    main()
