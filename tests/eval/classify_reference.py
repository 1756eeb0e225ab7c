"""The numbers of test_reference in test_classify.c, which has the same texts: scikit-learn's.

    python3 classify_reference.py    # scikit-learn 1.9.1, numpy 2.4.6, scipy 1.17.1
"""
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import f1_score
from sklearn.multiclass import OneVsRestClassifier

WORDS = [["card", "Card!", "CARD", "arrive", "arrives,", "lost", "(post)", "Straße", "été"],
         ["transfer", "Transfer:", "pending", "pending.", "account", "Überweisung", "ÜBERWEISUNG,"],
         ["refund", "Refund?", "shop", "price_2", "price_2;", "10.50", "возврат", "ВОЗВРАТ!"],
         ["I", "a", "my", "My", "is", "not", "don't", "when", "When", "the", "--", "why?"]]
state = 7


def draw(n):
    global state
    state = (state * 1103515245 + 12345) % 2 ** 31
    return (state >> 16) % n


def made(n):
    texts, labels = [], []
    for i in range(n):
        words = []
        for _ in range(4 + draw(6)):
            of = i % 3 if draw(4) == 0 else draw(3) if draw(4) == 0 else 3
            words.append(WORDS[of][draw(len(WORDS[of]))])
        texts.append(" ".join(words))
        labels.append("abc"[i % 3])
    return texts, labels


(train, labels), (test, truth) = made(90), made(150)
vectorizer = TfidfVectorizer(ngram_range=(1, 2))
rows = vectorizer.fit_transform(train)
print("terms", rows.shape[1], "nonzero", rows.nnz, vectorizer.transform(test).nnz)
print("the sum of the test rows %.12f" % vectorizer.transform(test).sum())
for model in (OneVsRestClassifier(LogisticRegression(solver="liblinear")), LogisticRegression()):
    found = model.fit(rows, labels).predict(vectorizer.transform(test))
    print(model, "right", sum(a == b for a, b in zip(found, truth)),
          "F1 %.12f" % f1_score(truth, found, average="macro"))
