"""Other work with records than a run: training, private evolution, replaced words."""

from __future__ import annotations

import dataclasses
import os
from typing import Any, Dict, Iterable, List, Mapping, Optional, Sequence, Tuple, Union

from ._ledger import Ledger, ledger_of
from ._library import (
    ArgumentError,
    Handle,
    StateError,
    call,
    cancel,
    ffi,
    lib,
    new,
    path_bytes,
    text,
)
from ._model import Model, model_of
from ._options import NAMES, Table, encoded, string, struct_dict
from ._records import RECORDS, Records, split_records
from ._release import grammar_of, set_biases
from ._report import Claim, Report, Verification
from ._show import bar as bar_of

FINETUNE = Table(NAMES, finetune=("dpi_finetune_options", "seeded reserved"))
STEER = Table({**NAMES, "n_public": "n_public", "n_public_tokens": "n_public_tokens"},
              steer=("dpi_steer_options", "seeded reserved"))
AUGPE = Table(
    NAMES,
    augpe=("dpi_augpe_options",
           "seeded session.n_seq session.n_kept prompts.label prompts.query prompts.n_turns "
           "prompts.n_text prompts.answer prompts.answer_end"),
    wording=("dpi_wording", "n_biases keep_answer"))
PERTURB = Table(perturb=("dpi_perturb_options", ""))
_MATRICES = ("q", "k", "v", "o", "gate", "up", "down")


def _charged(struct: Any, ledger: Any, dataset: Optional[str],
             keep: List[Any]) -> Optional[Ledger]:
    """The ledger that work is charged to, in its options."""
    found = ledger_of(ledger)
    if found is not None:
        struct.ledger = found.c
    if dataset is not None:
        struct.dataset = string("dataset", dataset, keep)
    return found


def _records_of(data: Any, options: Dict[str, Any]) -> Records:
    """Those that work cannot do without."""
    found = split_records(data, options)
    if found is None:
        raise TypeError("records: found None, allowed a table, a list, a path")
    return found


def _opened(table: Table, part: str, keep: List[Any], model: Model, records: Any,
            public: Dict[str, Any], ledger: Any, dataset: Optional[str],
            options: Dict[str, Any]) -> Tuple[Dict[str, Any], List[Any]]:
    """The structs of work that learns from records, with all that is no plain option, and the
    objects that they need. public: a field and PUBLIC records, read as the others are; None:
    none."""
    structs = table.new()
    held = _records_of(records, options)
    alike = {k: v for k, v in held.options.items() if k != "unit"}
    o = structs[part]
    if options.get("seed") is not None:
        o.seeded = 1
    table.set(structs, options, keep)
    o.model, o.records, o.cancel = model_of(model).c, held.c, cancel
    needs: List[Any] = [model, held]
    for field, given in public.items():
        if given is not None:
            needs.append(Records(given, **alike))
            setattr(o, field, needs[-1].c)
    charged = _charged(o, ledger, dataset, keep)
    return structs, needs + ([] if charged is None else [charged])


def _copy(claim: Any) -> Claim:
    made = new("dpi_claim")
    made[0] = claim[0]
    return Claim(made)


# ---- Training ----------------------------------------------------------------------------------


class Training(Handle):
    """A model learns from private records (dpinfer/finetune.h): settled, no record is read yet.

    claim: what is guaranteed of the adapter and of every text that is written with it. needs():
    memory and time. run(out) trains, and writes the adapter.
    """

    def __init__(self, model: Model, records: Any, *, ledger: Any = None,
                 dataset: Optional[str] = None, targets: Optional[Sequence[str]] = None,
                 held_out: Any = None, **options: Any) -> None:
        keep: List[Any] = []
        if options.get("checkpoint") is not None:
            options["checkpoint"] = os.fspath(options["checkpoint"])
        structs, needs = _opened(FINETUNE, "finetune", keep, model, records,
                                 {"held_out": held_out}, ledger, dataset, options)
        if targets is not None:
            structs["finetune"].targets = _targets(targets)
        out = ffi.new("dpi_finetune **")
        call(lib.dpi_finetune_open, structs["finetune"], out)
        super().__init__(out[0], lib.dpi_finetune_free, *needs)
        self._structs, self._keep, self._begun = structs, keep, False

    @property
    def claim(self) -> Claim:
        return _copy(lib.dpi_finetune_claim_of(self.c))

    @property
    def steps(self) -> int:
        """Steps of the whole training."""
        return int(self._structs["finetune"].n_steps)

    @property
    def done(self) -> int:
        """Steps that are done."""
        return int(lib.dpi_finetune_steps_done(self.c))

    @property
    def spent(self) -> Optional[float]:
        """The epsilon of the steps done so far, as if training ended here; None: there is none."""
        out = ffi.new("double *")
        call(lib.dpi_finetune_spent, self.c, out)
        return float(out[0]) if out[0] != float("inf") else None

    def needs(self) -> Dict[str, Any]:
        """Memory in bytes (dpi_finetune_plan), and `step_seconds`, measured before it begins."""
        out, seconds = new("dpi_finetune_plan"), ffi.new("double *")
        call(lib.dpi_finetune_plan_of, self._structs["finetune"], out)
        found = struct_dict(out, "dpi_finetune_plan")
        if not self._begun:
            with self._using():
                call(lib.dpi_finetune_measure, self.c, seconds)
            found["step_seconds"] = float(seconds[0])
        return found

    def step(self) -> bool:
        """One step; the first one charges the ledger and reads the records. False: all are done."""
        if not self._begun:
            with self._using():
                call(lib.dpi_finetune_begin, self.c)
            self._begun = True
        if self.done >= self.steps:
            return False
        with self._using():
            call(lib.dpi_finetune_step, self.c)
        return True

    def held_out_loss(self) -> float:
        """The mean loss in nats of a token of the PUBLIC held-out records, as the adapter is now.
        """
        out = ffi.new("double *")
        with self._using():
            call(lib.dpi_finetune_held_out, self.c, out)
        return float(out[0])

    def write(self, out: Any) -> None:
        """The adapter (with full: the model) as a GGUF file with the claim in it. Raises
        StateError: steps are left."""
        with self._using():
            call(lib.dpi_finetune_write, self.c, path_bytes(out), -1)

    def run(self, out: Any, progress: bool = False) -> Training:
        """All steps, and the adapter in the file `out`. A signal ends it between two units: with
        checkpoint= the same call goes on, without another charge."""
        bar = bar_of(self.steps, "step", progress)
        try:
            while self.step():
                if bar is not None:
                    bar.update(self.done - bar.n)
        except BaseException:
            if self._begun and self._structs["finetune"].checkpoint != ffi.NULL:
                call(lib.dpi_finetune_keep, self.c)
            raise
        finally:
            if bar is not None:
                bar.close()
        self.write(out)
        return self

    def __repr__(self) -> str:
        if self._pointer is None:
            return "<Training, closed>"
        return f"<Training: {self.done} of {self.steps} steps; {self.claim.short}>"


def _targets(names: Sequence[str]) -> int:
    wrong = [name for name in names if name not in _MATRICES]
    if wrong or isinstance(names, str):
        raise ArgumentError(f"targets: found {wrong or names!r}, allowed a list of "
                            f"{', '.join(_MATRICES)}")
    return sum(1 << _MATRICES.index(name) for name in set(names))


def finetune(model: Model, records: Any, out: Any, *, progress: bool = False,
             **options: Any) -> Training:
    """Training(model, records, **options).run(out): an adapter whose every text is private.

    units: about how many units there are, a public number. Use it as Model(path, adapter=out), or
    with generate()."""
    return Training(model, records, **options).run(out, progress)


# ---- Steering vectors --------------------------------------------------------------------------


class Steering(Handle):
    """In which direction the states of a model that reads private records lie from those of public
    texts (dpinfer/steer.h): settled, no record is read yet.

    claim: what is guaranteed of the vectors and of every text that is written with them. run(out)
    reads public texts, charges the ledger, reads the records once, and writes the vectors.
    """

    def __init__(self, model: Model, records: Any, *, ledger: Any = None,
                 dataset: Optional[str] = None, public_texts: Any = None, **options: Any) -> None:
        keep: List[Any] = []
        structs, needs = _opened(STEER, "steer", keep, model, records,
                                 {"public_texts": public_texts}, ledger, dataset, options)
        out = ffi.new("dpi_steer **")
        call(lib.dpi_steer_open, structs["steer"], out)
        super().__init__(out[0], lib.dpi_steer_free, *needs)
        self._structs, self._keep = structs, keep

    @property
    def claim(self) -> Claim:
        return _copy(lib.dpi_steer_claim(self.c))

    @property
    def drowned(self) -> int:
        """Labels (or 1) whose vectors the noise has drowned, so that they steer nothing; 0 before
        run()."""
        return int(lib.dpi_steer_drowned(self.c))

    def run(self, out: Any) -> Steering:
        """The vectors in the file `out`. Raises StateError: a second time; Cancelled: what was
        charged by then stays charged."""
        with self._using():
            call(lib.dpi_steer_prepare, self.c)
            call(lib.dpi_steer_release, self.c)
            call(lib.dpi_steer_write, self.c, path_bytes(out), -1)
        return self

    def __repr__(self) -> str:
        return "<Steering, closed>" if self._pointer is None else f"<Steering: {self.claim.short}>"


def steer(model: Model, records: Any, out: Any, **options: Any) -> Steering:
    """Steering(model, records, **options).run(out): vectors that bring the model nearer to the
    records, in one pass over them. Every text with them is private.

    Write with generate(model, steer=out), or on Model(path, control_vector=out)."""
    return Steering(model, records, **options).run(out)


def verify_file(path: Any) -> Verification:
    """The claim in an adapter, or in a model that was trained: what follows from it and from the
    file's tensors, computed a second time. Raises FileError, FormatError (there is no claim)."""
    claim, out = new("dpi_claim"), new("dpi_verification")
    try:
        call(lib.dpi_claim_verify_file, path_bytes(path), claim, out)
        return Verification(out)
    finally:
        lib.dpi_verification_free(out)


def file_claim(path: Any) -> Claim:
    """The claim in an adapter, or in a model that was trained. Raises StateError: it does not hold;
    FormatError: there is none."""
    claim, holds = new("dpi_claim"), ffi.new("int32_t *")
    call(lib.dpi_finetune_read_claim, path_bytes(path), claim, holds)
    if not holds[0]:
        raise StateError(f"{os.fspath(path)}: the claim does not hold; verify_file() says why")
    return Claim(claim)


# ---- Private evolution -------------------------------------------------------------------------


class Evolution(Handle):
    """Texts by private evolution (dpinfer/augpe.h): the model writes candidates, records vote.

    grammar (GBNF), json_schema: the form of the texts. logit_bias: a dict of tokens and numbers.

    texts: those that are released, when it is over. claim, report: what is guaranteed.
    """

    def __init__(self, model: Model, records: Any, *, ledger: Any = None,
                 dataset: Optional[str] = None, grammar: Optional[str] = None,
                 json_schema: Any = None, logit_bias: Optional[Mapping[Any, float]] = None,
                 **options: Any) -> None:
        keep: List[Any] = []
        structs = AUGPE.new()
        held = _records_of(records, options)
        o, form = structs["augpe"], grammar_of(grammar, json_schema)
        set_biases(structs["wording"], model_of(model), logit_bias, keep)
        o.wording = structs["wording"]
        if form is not None:
            o.grammar = form
            keep.append(form)
        if options.get("seed") is not None:
            o.seeded = 1
        AUGPE.set(structs, options, keep)
        o.model, o.records, o.session.cancel = model_of(model).c, held.c, cancel
        charged = _charged(o, ledger, dataset, keep)
        out = ffi.new("dpi_augpe **")
        call(lib.dpi_augpe_open, o, out)
        super().__init__(out[0], lib.dpi_augpe_free,
                         *[n for n in (model, held, charged) if n is not None])
        self._structs, self._keep, self.model = structs, keep, model
        self._event = ffi.new("dpi_augpe_event *")
        self.complete = False

    @property
    def claim(self) -> Claim:
        return _copy(lib.dpi_augpe_claim_of(self.c))

    def advance(self) -> bool:
        """A piece of work; the charge comes first. False: all rounds are over."""
        with self._using():
            call(lib.dpi_augpe_advance, self.c, self._event)
        self.complete = self._event.type == lib.DPI_AUGPE_NONE
        return not self.complete

    def run(self, progress: bool = False) -> Evolution:
        """All rounds."""
        bar = bar_of(self._structs["augpe"].n_rounds, "round", progress)
        try:
            while self.advance():
                if bar is not None and self._event.type == lib.DPI_AUGPE_ROUND:
                    bar.update(1)
        finally:
            if bar is not None:
                bar.close()
        return self

    @property
    def texts(self) -> List[str]:
        """The texts that are released; none before it is over."""
        if not self.complete:
            return []
        at, n, found = ffi.new("char **"), ffi.new("size_t *"), []
        for i in range(self._structs["augpe"].n_texts):
            lib.dpi_augpe_text(self.c, i, at, n)
            found.append(text(at[0], n[0]))
        return found

    @property
    def report(self) -> Report:
        """The privacy report."""
        out = ffi.new("dpi_report **")
        with self._using():
            call(lib.dpi_report_of, lib.dpi_augpe_claim_of(self.c), self.model.c,
                 path_bytes(self.model.path), out)
        report = Report(out[0], complete=self.complete)
        call(lib.dpi_report_wording, report.c, lib.dpi_augpe_wording(self.c))
        for _ in self.texts:
            call(lib.dpi_report_text_add, report.c, ffi.NULL, -1, lib.DPI_END_EOG)
        return report

    def to_pandas(self) -> Any:
        """The texts as a DataFrame of pandas."""
        import pandas as pd

        return pd.DataFrame({"text": self.texts})

    def __repr__(self) -> str:
        if self._pointer is None:
            return "<Evolution, closed>"
        state = f"{len(self.texts)} texts" if self.complete else "not over"
        return f"<Evolution: {state}; {self.claim.short}>"


def augpe(model: Model, records: Any, *, progress: bool = False, **options: Any) -> Evolution:
    """Evolution(model, records, **options).run(): many texts, for a budget that does not grow with
    their number."""
    return Evolution(model, records, **options).run(progress)


# ---- Replaced words ----------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class Certificate:
    """What is guaranteed of one word, for all pairs of words of the vocabulary. epsilon is None
    where no bound holds for all pairs; share_without: the share of pairs that have none."""

    nominal: float
    epsilon: Optional[float]
    finite: float
    share_without: float
    kept: float
    best_guess: float


class Perturber(Handle):
    """Replaces each word of a document by one like it, before the document leaves the machine
    (dpinfer/perturb.h): local differential privacy of words.

    vocabulary: a Model, whose tokens are the words; a file of words and vectors; or a dict of
    words and vectors. words: the most that are used, the first ones.
    """

    def __init__(self, vocabulary: Any, *, words: int = 0, mechanism: Any = "rantext",
                 cache: Any = None, **options: Any) -> None:
        keep: List[Any] = []
        structs = PERTURB.new()
        PERTURB.set(structs, options, keep)
        o = structs["perturb"]
        o.mechanism = _mechanism(mechanism)
        self._vocabulary = ffi.gc(_vocabulary(vocabulary, words, keep), lib.dpi_vocabulary_free)
        call(lib.dpi_vocabulary_measure, self._vocabulary,
             ffi.NULL if cache is None else path_bytes(cache), o.n_threads)
        out = ffi.new("dpi_perturber **")
        call(lib.dpi_perturber_create, self._vocabulary, o, out)
        of_model = [vocabulary] if isinstance(vocabulary, Model) else []  # it has the words
        super().__init__(out[0], lib.dpi_perturber_free, *of_model)
        self._options, self._keep = o, keep
        self._released = ffi.new("dpi_words_released *")

    def perturb(self, document: str) -> str:
        """One document. What is released of it counts in claim()."""
        data = encoded("document", document)
        found, n = ffi.new("dpi_perturbed_word **"), ffi.new("size_t *")
        with self._using():
            call(lib.dpi_perturb, self.c, ffi.from_buffer(data), len(data), found, n)
            lib.dpi_words_count(self._released, found[0], n[0])
            return text(lib.dpi_perturbed_text(self.c))

    def __call__(self, documents: Union[str, Iterable[str]]) -> Union[str, List[str]]:
        """One document, or a list of them."""
        if isinstance(documents, str):
            return self.perturb(documents)
        return [self.perturb(document) for document in documents]

    def _certificate(self) -> Any:
        found = new("dpi_certificate")
        with self._using():
            call(lib.dpi_perturb_certify, self.c, found)
        return found

    def certificate(self) -> Certificate:
        """The epsilon of a word that holds for all pairs: some n^2 operations."""
        c = self._certificate()
        return Certificate(float(c.nominal),
                           float(c.epsilon) if c.epsilon != float("inf") else None,
                           float(c.finite), float(c.infinite), float(c.kept),
                           float(c.best_guess))

    def claim(self) -> Claim:
        """What is guaranteed of all documents so far, each by itself."""
        made = new("dpi_claim")
        call(lib.dpi_perturb_claim, self._options, self._vocabulary, self._certificate(),
             self._released, made)
        return Claim(made)

    def __repr__(self) -> str:
        return "<Perturber, closed>" if self._pointer is None else "<Perturber>"


def _mechanisms() -> Dict[str, int]:
    n = int(lib.DPI_N_WORDS_MECHANISMS)
    return {text(lib.dpi_words_mechanism_name(i)): i for i in range(n)}


def _mechanism(name: Any) -> int:
    known = _mechanisms()
    if name not in known:
        raise ArgumentError(f"mechanism: found {name!r}, allowed {'|'.join(known)}")
    return known[name]


def _vocabulary(source: Any, words: int, keep: List[Any]) -> Any:
    import numpy as np

    out = ffi.new("dpi_vocabulary **")
    if isinstance(source, Model):
        call(lib.dpi_vocabulary_of_model, source.c, words, out)
    elif isinstance(source, Mapping):
        listed = list(source)[:words or None]
        vectors = np.ascontiguousarray([source[w] for w in listed], np.float32)
        if vectors.ndim != 2:
            raise ArgumentError("vocabulary: allowed are vectors of one length")
        made = ffi.new("char *[]", [string("vocabulary", w, keep) for w in listed])
        call(lib.dpi_vocabulary_create, made, ffi.from_buffer("float[]", vectors), len(listed),
             vectors.shape[1], out)
    else:
        call(lib.dpi_vocabulary_read, path_bytes(source), words, out)
    return out[0]


def perturb(documents: Union[str, Iterable[str]], vocabulary: Any,
            **options: Any) -> Union[str, List[str]]:
    """Perturber(vocabulary, **options)(documents)."""
    with Perturber(vocabulary, **options) as made:
        found: Union[str, List[str]] = made(documents)
        return found


for _table in (FINETUNE, RECORDS):
    _table.document(Training.__init__)
    _table.document(finetune)
for _table in (STEER, RECORDS):
    _table.document(Steering.__init__)
    _table.document(steer)
for _table in (AUGPE, RECORDS):
    _table.document(Evolution.__init__)
    _table.document(augpe)
PERTURB.document(Perturber.__init__)
