#!/usr/bin/env python3
"""Word vectors and synonyms from WordNet 3.0, for `dpinfer perturb` and `dpinfer attack`.
    bench/wordnet.py vectors [--words 11000] [--dimensions 300] > vectors.txt
    bench/wordnet.py synonyms > synonyms.txt
Debian: wordnet-base, and python3-scipy for the vectors: positive pointwise mutual information of words that stand
near each other in the definitions, and its largest singular directions (Levy, Goldberg and Dagan 2015, p = 0.5).
They are as long as they come out, as GloVe's are, and in the order of the words' counts."""
import argparse
import collections
import re

PARTS = "noun", "verb", "adj", "adv"


def entries(folder):
    for part in PARTS:
        with open(f"{folder}/data.{part}", encoding="utf-8") as lines:
            yield from (line for line in lines if not line.startswith(" "))


def synonyms(folder):
    """Of each entry its words, without the marker of an adjective's place: "galore(ip)"."""
    for entry in entries(folder):
        fields = entry.split()
        n_words = int(fields[3], 16)
        print(*(re.sub(r"\(.*", "", word) for word in fields[4:4 + 2 * n_words:2]))


def definitions(folder):
    """Lists of words and punctuation."""
    return [re.findall(r"[A-Za-z]+|[.,;:]", entry.split(" | ", 1)[1]) for entry in entries(folder)]


def near_pairs(texts, words, window):
    """How often two words stand at most `window` apart; a pair at a distance of d words is 1/d."""
    place = {word: i for i, word in enumerate(words)}
    pairs = collections.Counter()
    for text in texts:
        known = [place[word] for word in text if word in place]
        for i, a in enumerate(known):
            for distance, b in enumerate(known[i + 1:i + 1 + window], 1):
                pairs[a, b] += 1 / distance
                pairs[b, a] += 1 / distance
    return pairs


def embed(pairs, n_words, n_dimensions):
    import numpy
    from scipy.sparse import csr_matrix
    from scipy.sparse.linalg import svds

    at = numpy.array(list(pairs), dtype=numpy.int32).T
    count = numpy.array(list(pairs.values()))
    of_word = numpy.bincount(at[0], count, n_words)
    of_context = of_word ** .75
    information = numpy.log(count * of_context.sum() / (of_word[at[0]] * of_context[at[1]]))
    keep = information > 0
    matrix = csr_matrix((information[keep], at[:, keep]), (n_words, n_words))
    u, s, _ = svds(matrix, n_dimensions, random_state=1)
    return u * numpy.sqrt(s)


def vectors(folder, n_words, n_dimensions, window):
    texts = definitions(folder)
    counts = collections.Counter(word for text in texts for word in text)
    words = [word for word, _ in counts.most_common(n_words)]
    for word, row in zip(words, embed(near_pairs(texts, words, window), len(words), n_dimensions)):
        print(word, *(f"{x:.5f}" for x in row))


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("what", choices=("vectors", "synonyms"))
    p.add_argument("--words", type=int, default=11000, metavar="N")
    p.add_argument("--dimensions", type=int, default=300, metavar="N")
    p.add_argument("--window", type=int, default=5, metavar="N")
    p.add_argument("--wordnet", default="/usr/share/wordnet", metavar="FOLDER")
    a = p.parse_args()
    if a.what == "synonyms":
        synonyms(a.wordnet)
    else:
        vectors(a.wordnet, a.words, a.dimensions, a.window)


if __name__ == "__main__":
    main()
