"""What private texts are good for: a classifier learns from them, and is tested on real ones.

    pip install dpinfer pandas scikit-learn
    python classifier.py

Made-up discharge letters have a label, the illness. Some are held out; the others are records, from
which texts of each label are released. A classifier that learned from the texts is free to be given
away: what follows from released texts costs nothing more. Beside it: one that always says the most
frequent label, one that learned from texts without any record, and one that learned from the
records themselves, which is what nobody may publish.
"""

import json
import pathlib

import dpinfer
import pandas as pd
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

LETTERS = pathlib.Path(__file__).resolve().parent.parent / "discharge.jsonl"
ILLNESSES = ["sepsis", "allergy", "burn"]


def letters():
    """The letters of these illnesses: records, and those that were held out."""
    rows = [json.loads(line) for line in LETTERS.read_text("utf-8").splitlines()]
    table = pd.DataFrame([{"text": row["text"], "illness": row["attributes"]["dx"]}
                          for row in rows])
    table = table[table["illness"].isin(ILLNESSES)]
    return table.iloc[60:], table.iloc[:60]


def accuracy(learned, held_out):
    """Of a classifier that learned from a table of texts and labels."""
    model = make_pipeline(TfidfVectorizer(ngram_range=(1, 2)), LogisticRegression(max_iter=1000))
    model.fit(learned["text"], learned["label"])
    return model.score(held_out["text"], held_out["illness"])


def main():
    records, held_out = letters()
    model = dpinfer.Model.builtin()
    options = dict(public_prompt="Write hospital discharge instructions.", tokens=70, tau=0.8)

    # Batches are made within a label: which letter has which is public here, and so are the names.
    release = dpinfer.run(model, records, label="illness", labels="public",
                          label_names=ILLNESSES, epsilon=10, delta=1e-3, batch=8, **options)
    texts = release.to_pandas()
    print(texts.groupby("label").size().to_string())
    print(release[0])

    # As many texts without a record, with labels as they come: what the budget has to beat.
    public = [one.text for one in dpinfer.run(model, None, method="plain", texts=len(texts),
                                              **options)]
    control = pd.DataFrame({"text": public, "label": texts["label"].to_numpy()})

    majority = held_out["illness"].value_counts(normalize=True).max()
    print(f"\n{release.claim.guarantee}; {len(texts)} texts, tested on {len(held_out)} letters")
    print(f"most frequent label       {majority:.2f}")
    print(f"texts without records     {accuracy(control, held_out):.2f}")
    print(f"private texts             {accuracy(texts, held_out):.2f}")
    real = records.rename(columns={"illness": "label"})
    print(f"the records: NOT PRIVATE  {accuracy(real, held_out):.2f}")


if __name__ == "__main__":
    main()
