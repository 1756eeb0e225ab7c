"""What transformers_engine.py and llama_cpp_engine.py share: prompts, a text, and a look at rows.

An engine has
    n_vocab              tokens of its vocabulary
    prompt(answer)       tokens of TASK and of how the answer begins
    rows(prompts)        rows: several prompts, lists of tokens, which get the same tokens
        rows.logits          [len(prompts), n_vocab] float32, of what comes after each
        rows.append(token)   the next token of all of them
    is_end(token)        whether a text ends before it
    text(tokens)         what tokens say

The guarantee of dpinfer.Sampler needs private rows of which each is a function of its own record.
Engines that compute several rows in one pass seldom promise that: matrix products take other
kernels, and add in another order, where there are more or longer rows. Then one record moves the
logits of all others a little, and what the sampler bounds is the effect of one row. So OneByOne is
the way to private text. The pass with all rows is here to be compared with it.
"""

import argparse
import csv
import pathlib
import sys
import time

import dpinfer
import numpy as np

TICKETS = pathlib.Path(__file__).resolve().parent.parent / "tickets.csv"
TASK = "Write a list of made-up support tickets."
OPENING = '1. "'
MOST = 400  # characters of a record that are read: a public number


def records(n):
    """The first n texts of tickets.csv, which stand for private records."""
    with open(TICKETS, encoding="utf-8", newline="") as file:
        return [row["text"][:MOST].replace('"', "'") for row in csv.DictReader(file)][:n]


def answer_of(record):
    """How the answer begins: the record is the first of the list, and the text the second."""
    return f'{OPENING}{record}"\n2. "'


class OneByOne:
    """Each prompt in a pass of its own, so that no row can depend on another one."""

    def __init__(self, rows, prompts):
        self._rows = [rows([prompt]) for prompt in prompts]

    @property
    def logits(self):
        return np.concatenate([row.logits for row in self._rows])

    def append(self, token):
        for row in self._rows:
            row.append(token)


def draw(sampler, public, private, is_end):
    """A text: at most as many tokens as the sampler has a budget for."""
    tokens = []
    while sampler.tokens_left > 0:
        tokens.append(sampler.step(public.logits[0], private.logits))
        if is_end(tokens[-1]):
            return tokens[:-1]
        public.append(tokens[-1])
        private.append(tokens[-1])
    return tokens


def largest_change(rows, prompts, others, token):
    """The most by which a logit of the first prompt differs between passes with other company:
    alone, with the other prompts, and with others in their place; for what comes after the prompt
    and after one more token."""
    companies = [rows(prompts[:1]), rows(prompts), rows([prompts[0], *others])]
    most = 0.0
    for more in (False, True):
        if more:
            for company in companies:
                company.append(token)
        first = [company.logits[0] for company in companies]
        most = max(most, *(float(np.abs(row - first[0]).max()) for row in first[1:]))
    return most


def say_change(most):
    """A difference proves that rows depend on each other. None proves it for these prompts, this
    version and this machine alone."""
    if most > 0:
        print(f"rows: NOT independent here: other rows move a logit by up to {most:.3g}")
    else:
        print("rows: no difference was seen; for other lengths, numbers of rows, versions and "
              "machines that proves nothing")


def say_private(sampler, one_by_one):
    """The statement, on stderr."""
    plan = sampler.plan
    said = ("PRIVATE" if one_by_one else
            "NOT PRIVATE: all records were in one pass, whose rows may depend on each other")
    print(f"{said}; epsilon {plan['epsilon']:.4g} at delta {plan['delta']:.3g} for this text, "
          f"clip bound C {plan['clip']:.3g}", file=sys.stderr)


def main(open_engine, together, **model):
    """The whole script. open_engine(asked) opens the engine of what the command line asks for;
    together: what --together has all records in; model: how argparse reads the model."""
    parser = argparse.ArgumentParser()
    parser.add_argument("model", **model)
    parser.add_argument("-B", "--batch", type=int, default=8)
    parser.add_argument("-n", "--tokens", type=int, default=40)
    parser.add_argument("--epsilon", type=float, default=10)
    parser.add_argument("--delta", type=float, default=1e-5)
    parser.add_argument("--together", action="store_true", help=f"NOT PRIVATE: one {together}")
    asked = parser.parse_args()

    engine = open_engine(asked)
    prompts = [engine.prompt(answer_of(text)) for text in records(2 * asked.batch)]
    private, others = prompts[:asked.batch], prompts[asked.batch + 1:]
    public = engine.prompt(OPENING)
    say_change(largest_change(engine.rows, private, others, token=public[-1]))

    # The public prompt has a pass of its own in any case: company would tell how long records are.
    sampler = dpinfer.Sampler(vocab=engine.n_vocab, references=asked.batch, epsilon=asked.epsilon,
                              delta=asked.delta, tokens=asked.tokens, tau=0.8, top_k=50)
    began = time.monotonic()
    held = engine.rows(private) if asked.together else OneByOne(engine.rows, private)
    tokens = draw(sampler, engine.rows([public]), held, engine.is_end)
    print(engine.text(tokens).strip())
    say_private(sampler, not asked.together)
    print(f"{len(tokens)} tokens from {asked.batch} records, "
          f"{time.monotonic() - began:.1f} s with their prompts")
