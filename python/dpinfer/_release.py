"""Records to released texts: plan, run, resume."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
from typing import Any, Dict, Iterator, List, Mapping, NamedTuple, Optional, Union

from ._ledger import Ledger, ledger_of, lib_one
from ._library import (
    ArgumentError,
    BudgetExceeded,
    Cancelled,
    Error,
    Handle,
    StateError,
    call,
    cancel,
    failure,
    ffi,
    lib,
    new,
    path_bytes,
    status_name,
    taken,
    text,
)
from ._model import Model, model_of
from ._options import (
    NAMES,
    Table,
    _integer,
    _real,
    encoded,
    flag,
    name_of,
    narrow,
    string,
    struct_dict,
    value_of,
)
from ._records import RECORDS, Records, split_records
from ._report import Claim, Report
from ._show import bar as bar_of
from ._show import escape, lines

OPTIONS = Table(
    {**NAMES, "n_records": "n_records"},
    release=("dpi_release_options",
             "as_drawn seeded shard n_shards model_path "
             "method.n_vocab method.n_ref method.n_tokens method.top_k method.denominator "
             "method.isa session.n_seq session.n_kept "
             "prompts.label prompts.answer prompts.answer_end prompts.n_turns prompts.n_text"),
    wording=("dpi_wording", "n_biases"))
_TOKEN, _END, _NONE, _UNSEEN = 2, 3, 0, -1


@dataclasses.dataclass(frozen=True)
class Text:
    """A text that is released. end: how it ended: eog (by itself), stop, words, length (cut) or
    cancelled.
    """

    index: int
    text: str
    label: Optional[str]
    tokens: int
    end: str

    def __str__(self) -> str:
        return self.text


class Interrupted(KeyboardInterrupt):
    """A run was stopped by a signal, at a token. `release` has all that was released."""

    def __init__(self, release: Release) -> None:
        super().__init__("stopped; what was released is in .release")
        self.release = release


class _Settings:
    """What a release is made of, so that it can be made again."""

    def __init__(self, model: Model, records: Optional[Records], options: Dict[str, Any]) -> None:
        self.model, self.records, self.options = model_of(model), records, options

    def open(self, ledger: Optional[Ledger], dataset: Optional[str],
             journal: Any) -> Dict[str, Any]:
        """The C object of a release, and what it needs: settled, no record is read."""
        keep: List[Any] = []
        structs = OPTIONS.new()
        o, w = structs["release"], structs["wording"]
        o.method.pace = lib.DPI_PACE_AUTO
        values = dict(self.options)
        grammar = grammar_of(values.pop("grammar", None), values.pop("json_schema", None))
        set_biases(w, self.model, values.pop("logit_bias", None), keep)
        if values.get("seed") is not None:
            o.seeded = 1
        OPTIONS.set(structs, values, keep)
        if "top_k" in values and values["top_k"] is not None:
            o.method.top_k = max(o.top_k, 0)
        o.model, o.wording = self.model.c, w
        o.session.cancel = cancel
        if self.records is not None:
            o.records = self.records.c
        if grammar is not None:
            o.grammar = grammar
        if ledger is not None:
            o.ledger = ledger.c
        if dataset is not None:
            o.dataset = string("dataset", dataset, keep)
        if journal is not None:
            o.journal = journal
            keep.append(ffi.new("char[]", path_bytes(self.model.path)))
            o.model_path = keep[-1]
        out = ffi.new("dpi_release **")
        call(lib.dpi_release_open, o, out)
        return {"c": out[0], "keep": [keep, structs, grammar, journal],
                "needs": [n for n in (self.model, self.records, ledger) if n is not None]}


def _json(option: str, value: Any, kind: type) -> bytes:
    """A value as JSON. Raises TypeError, where it is of another kind or holds what JSON has not."""
    try:
        if isinstance(value, kind):
            return json.dumps(value).encode("ascii")
    except (TypeError, ValueError, RecursionError):
        pass
    raise TypeError(f"{option}: found {type(value).__name__}, allowed a {kind.__name__} of what "
                    "JSON has")


def grammar_of(grammar: Any, schema: Any) -> Any:
    if grammar is not None and schema is not None:
        raise ArgumentError("grammar and json_schema: allowed is one of them")
    if grammar is None and schema is None:
        return None
    said = "grammar" if grammar is not None else "json_schema"
    if schema is None or isinstance(schema, str):
        data = encoded(said, grammar if schema is None else schema)
    else:
        data = _json(said, schema, dict)
    out = ffi.new("dpi_grammar **")
    call(lib.dpi_grammar_parse if schema is None else lib.dpi_grammar_from_schema,
         ffi.from_buffer(data), len(data), out)
    return ffi.gc(out[0], lib.dpi_grammar_free)


def set_biases(wording: Any, model: Model, biases: Optional[Mapping[Any, float]],
                keep: List[Any]) -> None:
    """{token or its text: what is added to its logit}."""
    if biases is None:
        return
    if not isinstance(biases, Mapping):
        raise TypeError(f"logit_bias: found {type(biases).__name__}, allowed a dict of tokens and "
                        "numbers")
    made = ffi.new("dpi_token_bias[]", len(biases))
    for one, (token, bias) in zip(made, biases.items()):
        found = model.tokenizer.find(token) if isinstance(token, str) else _integer(
            "logit_bias", token)
        if found is None or not 0 <= found < model.info["n_vocab"]:
            raise ArgumentError(f"logit_bias: found {token!r}, allowed is the text of a token of "
                                f"the model, or its number 0..{model.info['n_vocab'] - 1}")
        one.token, one.bias = found, _real("logit_bias", bias)
    keep.append(made)
    wording.biases, wording.n_biases = made, len(biases)


class Plan(Handle):
    """What a run guarantees and needs, settled before a record is looked at.

    str() tells it to people. claim, epsilon, delta, clip: what the guarantee comes to. run() makes
    the texts, start() begins one text at a time. The first run without a job or another ledger has
    what was settled here; each other run settles it again, which takes the time of the pace.
    """

    def __init__(self, settings: _Settings, ledger: Optional[Ledger],
                 dataset: Optional[str]) -> None:
        made = settings.open(ledger, dataset, None)
        self._settings, self._keep = settings, made["keep"]
        self._ledger, self._dataset = ledger, dataset
        self._measured: Dict[Any, Dict[str, Any]] = {}
        self._given = False  # to a run
        super().__init__(made["c"], lib.dpi_release_free, *made["needs"])
        if ledger is not None:
            _settle_ledger(lib.dpi_release_preview, self.c)
        self._told = _told_of(self.c)

    def _take(self) -> Dict[str, Any]:
        """What was settled, for a run that has it from now on."""
        pointer = self.c
        with self._using():
            ffi.gc(pointer, None)
            self._pointer, self._given = None, True
        return {"c": pointer, "keep": self._keep, "needs": self._needs}

    @property
    def c(self) -> Any:
        """The C object, settled anew where a run has the first one."""
        if self._given:
            made = self._settings.open(self._ledger, self._dataset, None)
            self._pointer, self._keep = ffi.gc(made["c"], lib.dpi_release_free), made["keep"]
            self._given = False
        return super().c

    def close(self) -> None:
        self._given = False
        super().close()

    @property
    def claim(self) -> Claim:
        return _claim_of(self._told.run)

    @property
    def epsilon(self) -> Optional[float]:
        return self.claim.epsilon

    @property
    def delta(self) -> float:
        return self.claim.delta

    @property
    def clip(self) -> float:
        """C, how far a reference moves a logit at most."""
        return float(self._told.run.plan.clip)

    @property
    def settings(self) -> Dict[str, Any]:
        """What the method is run with, as it was settled (dpi_sampler_options)."""
        run = self._told.run
        return {**struct_dict(run.method, "dpi_sampler_options"), "n_texts": run.n_texts}

    @property
    def wording(self) -> Dict[str, Any]:
        """How texts are worded: answer, stops and bans as they were settled."""
        w = self._told.wording
        found = struct_dict(w, "dpi_wording")
        found["answer"] = text(w.answer.data, w.answer.n_bytes) if w.answer.data else None
        for name in ("stops", "bans"):
            listed = getattr(w, name)
            found[name] = [text(listed[i].data, listed[i].n_bytes)
                           for i in range(getattr(w, "n_" + name))]
        return found

    @property
    def prompts(self) -> Dict[str, Any]:
        """The prompts in full (docs/report.md)."""
        found: Dict[str, Any] = json.loads(self._told.prompts)
        return found

    def needs(self, record_tokens: int = 0, unit_records: int = 0) -> Dict[str, Any]:
        """Memory in bytes and time in seconds on this machine, by a few measured passes with
        made-up prompts: a second or two. record_tokens: of a usual record, as far as that is
        public; 0: 300. unit_records: records of a usual unit; 0: the most that are used."""
        asked = (narrow("record_tokens", "int32_t", record_tokens),
                 narrow("unit_records", "int32_t", unit_records))
        if asked not in self._measured:
            out = new("dpi_release_plan")
            out.n_record_usual, out.n_unit_usual = asked
            pointer = self.c
            with self._using():
                call(lib.dpi_release_plan_get, pointer, out)
            self._measured[asked] = struct_dict(out, "dpi_release_plan")
        return self._measured[asked]

    @property
    def hearing(self) -> str:
        """Whether C is enough for references to be heard: hardly, heard, well heard; "" where
        the method has no such number."""
        run = self._told.run
        method, plan = ffi.addressof(run, "method"), ffi.addressof(run, "plan")
        factor = lib.dpi_hearing_factor(method, plan)
        return text(lib.dpi_hearing_text(lib.dpi_hearing_of(factor))) if factor > 0 else ""

    def start(self, ledger: Optional[Union[Ledger, Any]] = None, dataset: Optional[str] = None,
              job: Any = None) -> Release:
        """A release that has not begun: iterate over it for its texts. Each is a run of its own,
        with a charge of its own.

        ledger, dataset: where the run is charged, before a record is read; those of the plan if
        they are not given. job: a folder that keeps the run, so that resume() goes on with it
        whatever stops it; the folder is as secret as the records."""
        opened, folder = ledger_of(ledger), None
        if opened is None:
            opened, dataset = self._ledger, dataset or self._dataset
        if job is not None:
            folder = _open_journal(job, create=True, application=_remember(self._settings))
        if folder is None and opened is self._ledger and dataset == self._dataset:
            return Release(self._take(), self._settings.model, opened, dataset, None)
        return _begin(self._settings, opened, dataset, folder, job)

    def run(self, ledger: Optional[Union[Ledger, Any]] = None, dataset: Optional[str] = None,
            job: Any = None, progress: bool = False) -> Release:
        """All texts. progress: a bar, if tqdm is there.

        Raises Interrupted, a KeyboardInterrupt, at a signal: it has what was released. Another
        error has it as .release, too; BudgetExceeded comes before a record is read."""
        return _finish(self.start(ledger, dataset, job), progress)

    def __str__(self) -> str:
        lines = [self.claim.statement().rstrip("\n")]
        run = self._told.run
        if self.hearing:
            lines.append(f"clip bound C  {self.clip:.4g}: references are "
                         f"{self.hearing.replace('hardly', 'hardly heard')}")
        n = self.needs()
        lines.append(f"memory        {n['memory_usual_bytes'] / 2**20:.0f} MiB, with records of "
                     f"{n['n_record_usual'] or 300} tokens")
        lines.append(f"time          {_duration(n['seconds'])}, {_duration(n['seconds_reading'])} "
                     f"of it for prompts: {run.n_texts} texts of {run.method.n_tokens} tokens")
        return "\n".join(lines)

    def __repr__(self) -> str:
        if self._pointer is None and not self._given:
            return "<Plan, closed>"
        return f"<Plan: {self.claim.short}>"

    def _repr_html_(self) -> str:
        return lines(str(self))


def _duration(seconds: float) -> str:
    if seconds < 90:
        return f"{seconds:.3g} s"
    return f"{seconds / 60:.3g} min" if seconds < 5400 else f"{seconds / 3600:.3g} h"


def _claim_of(run: Any) -> Claim:
    made = new("dpi_claim")
    lib.dpi_claim_of_run(run, made)
    return Claim(made)


def _prompts_of(release: Any) -> str:
    out = ffi.new("char **")
    call(lib.dpi_release_prompts, release, out)
    return taken(out[0], private=True)


class _Told(NamedTuple):
    """What a release says of itself, when the C object is another's or no more."""

    run: Any
    wording: Any
    prompts: str


def _told_of(release: Any) -> _Told:
    run, out = ffi.new("dpi_run *"), ffi.new("dpi_wording **")
    run[0] = lib.dpi_release_run(release)[0]
    call(lib.dpi_wording_copy, lib.dpi_release_wording(release), out)
    return _Told(run, ffi.gc(out[0], lib.dpi_wording_free), _prompts_of(release))


def _settle_ledger(function: Any, release: Any) -> None:
    """Reserves, or looks what a reserve would do; BudgetExceeded has the sums."""
    try:
        call(function, release)
    except BudgetExceeded as error:
        err = ffi.new("dpi_error *")
        lib.dpi_release_preview(release, err)
        sums = lib.dpi_release_run(release).ledger
        if sums.budget > 0:
            error.spent, error.asked = sums.before / lib_one(), sums.charge / lib_one()
            error.left = max(sums.budget - sums.before, 0) / lib_one()
        raise


# ---- Jobs --------------------------------------------------------------------------------------


def _remember(settings: _Settings) -> str:
    """The options of a run as a journal keeps them."""
    r = settings.records
    try:
        return json.dumps({"python": 1, "model": os.path.abspath(os.fspath(settings.model.path)),
                           "records": None if r is None else r.path,
                           "record_options": {} if r is None else r.options,
                           "options": _kept(settings.options)})
    except (TypeError, ValueError) as error:
        raise TypeError(f"job: an option cannot be kept in its folder: {error}") from None


def _kept(options: Dict[str, Any]) -> Dict[str, Any]:
    found = {k: v for k, v in options.items() if v is not None}
    if isinstance(found.get("logit_bias"), Mapping):  # JSON makes texts of numbers
        found["logit_bias"] = list(found["logit_bias"].items())
    return found


def _open_journal(folder: Any, create: bool, application: Optional[str] = None) -> Any:
    keep: List[Any] = []
    o = new("dpi_journal_options")
    o.create = int(create)
    if application is not None:
        o.application = string("job", application, keep)
    out = ffi.new("dpi_journal **")
    call(lib.dpi_journal_open, path_bytes(folder), o, out)
    return ffi.gc(out[0], lib.dpi_journal_close)


def resume(job: Any, records: Any = None, model: Optional[Model] = None,
           ledger: Optional[Union[Ledger, Any]] = None, dataset: Optional[str] = None,
           progress: bool = False) -> Release:
    """Goes on with a run that was begun with job=, whatever has stopped it. There is no new charge.
    One at a time has a job: a release of this process that is stopped is closed before.

    records: those of the run, needed where they came from memory; another table is refused. model,
    ledger: as there; by default the model's file is opened again, and the ledger is the job's own.
    """
    journal = _open_journal(job, create=False)
    said = json.loads(text(lib.dpi_journal_application(journal)) or "{}")
    if said.get("python") != 1:
        raise ArgumentError(f"{os.fspath(job)}: the job was not made by this package; 'dpinfer "
                            "resume' goes on with those of the program")
    options = said["options"]
    if "logit_bias" in options:
        options["logit_bias"] = dict(map(tuple, options["logit_bias"]))
    if records is None and said["records"] is None:
        raise ArgumentError("records: allowed are those that the run began with, which came from "
                            "memory")
    if not isinstance(records, Records):
        data = said["records"] if records is None else records
        records = Records(data, **said["record_options"])
    settings = _Settings(model or Model(said["model"]), records, options)
    return _finish(_begin(settings, ledger_of(ledger), dataset, journal, job), progress)


# ---- A run -------------------------------------------------------------------------------------


def _begin(settings: _Settings, ledger: Optional[Ledger], dataset: Optional[str], journal: Any,
           job: Any) -> Release:
    return Release(settings.open(ledger, dataset, journal), settings.model, ledger, dataset, job)


class Release(Handle):
    """A run: texts that are released, one after the other. Iterating makes them.

    texts: those that are over. complete: all are. claim, report: what was guaranteed.
    """

    def __init__(self, made: Dict[str, Any], model: Model, ledger: Optional[Ledger],
                 dataset: Optional[str], job: Any) -> None:
        super().__init__(made["c"], lib.dpi_release_free, *made["needs"])
        self._keep, self.model, self.job = made["keep"], model, job
        self._ledger, self._dataset = ledger, dataset
        self.texts: List[Text] = []
        self.complete, self._stopped = False, False
        self._pieces: Dict[int, Dict[int, str]] = {}
        self._event = ffi.new("dpi_release_event *")
        self._event.type = _UNSEEN
        self._err = ffi.new("dpi_error *")
        self._begun = False
        self._report: Optional[Report] = None
        self._told: Any = None  # of a job that is over

    def __iter__(self) -> Iterator[Text]:
        """The texts, in their order, each when it is over; those that are there first."""
        given = 0
        while True:
            while given < len(self.texts):
                given += 1
                yield self.texts[given - 1]
            if self.complete or self._stopped or not self._advance():
                return

    def _advance(self) -> bool:
        """One event. False: all texts are over. A signal may come between any two lines: the event
        stays where it is until it was looked at, and looking twice changes nothing."""
        e = self._event
        if e.type == _UNSEEN:
            with self._using():
                if not self._begun:
                    _settle_ledger(lib.dpi_release_reserve, self.c)
                    self._begun = True
                status = lib.dpi_release_advance(self.c, e, self._err)
            if status != 0:
                e.type = _UNSEEN
                raise failure(status, self._err)
        kind, index = e.type, e.index
        if kind == _NONE:
            self.complete = True
            if self.job is not None:
                self._let_go()
        elif kind in (_TOKEN, _END):
            pieces = self._pieces.setdefault(index, {})
            pieces[e.n_drawn if kind == _TOKEN else -1] = text(e.text, e.n_bytes)
            if kind == _END and index not in {t.index for t in self.texts[-1:]}:
                whole = "".join(pieces[k] for k in sorted(pieces) if k >= 0) + pieces[-1]
                self.texts.append(Text(index, whole, self._label(index), int(e.n_drawn),
                                       name_of("dpi_end", e.end)))
        e.type = _UNSEEN
        return bool(kind != _NONE)

    def _let_go(self) -> None:
        """A job that is over: its folder may be opened again. What is told of it stays."""
        self._told = (*_told_of(self.c), self.null_records, self.progress)
        self.close()
        self._keep = None

    @property
    def _run(self) -> Any:
        return self._told[0] if self._told else lib.dpi_release_run(self.c)

    def _label(self, index: int) -> Optional[str]:
        label, n = ffi.new("char **"), ffi.new("size_t *")
        lib.dpi_release_label(self.c, index, label, n)
        return None if label[0] == ffi.NULL else text(label[0], n[0])

    def close(self) -> None:
        super().close()
        self._keep = []  # a job's folder: resume() may have it now

    def cancel(self) -> None:
        """Ends the run at a token, from any thread."""
        lib.dpi_release_cancel(self.c)

    def stop(self) -> None:
        """Ends the run here; what was drawn is in texts."""
        if self.complete:
            return
        self.cancel()
        try:
            while not self.complete and self._advance():
                pass
        except Cancelled:
            self._stopped = True

    @property
    def progress(self) -> Dict[str, Any]:
        """How far the texts are (dpi_release_progress): public."""
        if self._told:
            return dict(self._told[4])
        out = new("dpi_release_progress")
        call(lib.dpi_release_progress_get, self.c, out)
        return struct_dict(out, "dpi_release_progress")

    @property
    def claim(self) -> Claim:
        return _claim_of(self._run)

    @property
    def null_records(self) -> Optional[int]:
        """Records so far that added nothing: PRIVATE. None where even you must not be told."""
        if self._told:
            return None if self._told[3] is None else int(self._told[3])
        n = int(lib.dpi_release_null_records(self.c))
        return n if n >= 0 else None

    def make_report(self, prompts: bool = False,
                    meta: Optional[Mapping[str, str]] = None) -> Report:
        """The privacy report. prompts: with the prompts in full. meta: fields of yours, such as
        organisation and purpose."""
        if not self._begun:
            raise StateError("report: the run has not begun")
        out = ffi.new("dpi_report **")
        with self._using():
            call(lib.dpi_report_create, self._run, self.model.c, path_bytes(self.model.path), out)
            report = Report(out[0], complete=self.complete)
            call(lib.dpi_report_wording, report.c,
                 self._told[1] if self._told else lib.dpi_release_wording(self.c))
            if flag("prompts", prompts):
                said = self._told[2] if self._told else _prompts_of(self.c)
                call(lib.dpi_report_prompts, report.c, said.encode())
            if meta is not None:
                said_meta = _json("meta", dict(meta) if isinstance(meta, Mapping) else meta, dict)
                call(lib.dpi_report_meta, report.c, b"meta", ffi.from_buffer(said_meta),
                     len(said_meta))
            if self._ledger is not None and self._dataset is not None:
                call(lib.dpi_report_charges, report.c, self._ledger.c, self._dataset.encode())
            for one in self.texts:
                end = value_of("dpi_end", "end", one.end)
                label = ffi.NULL if one.label is None else one.label.encode()
                call(lib.dpi_report_text_add, report.c, label, one.tokens, end)
        return report

    @property
    def report(self) -> Report:
        """make_report() of what is released so far."""
        if self._report is not None:
            return self._report
        made = self.make_report()
        if self.complete:
            self._report = made
        return made

    def to_dicts(self) -> List[Dict[str, Any]]:
        """Each text with its index, label, number of tokens and end."""
        return [dataclasses.asdict(one) for one in self.texts]

    def to_pandas(self) -> Any:
        """The texts as a DataFrame of pandas."""
        import pandas as pd

        columns = [f.name for f in dataclasses.fields(Text)]
        return pd.DataFrame(self.to_dicts(), columns=columns).set_index("index")

    def to_arrow(self) -> Any:
        """The texts as a table of pyarrow: polars.from_arrow() and Parquet take it."""
        import pyarrow as pa

        kinds = {"index": pa.int32(), "text": pa.string(), "label": pa.string(),
                 "tokens": pa.int32(), "end": pa.string()}
        return pa.Table.from_pylist(self.to_dicts(), schema=pa.schema(list(kinds.items())))

    def __len__(self) -> int:
        return len(self.texts)

    def __getitem__(self, at: int) -> Text:
        return self.texts[at]

    def __repr__(self) -> str:
        if self._pointer is None and not self._told:
            return f"<Release of {len(self.texts)} texts, closed>"
        return (f"<Release: {len(self.texts)} texts{'' if self.complete else ', not over'}; "
                f"{self.claim.short}>")

    def _repr_html_(self) -> str:
        rows = "".join(f"<tr><td>{escape(one.label or '')}</td>"
                       f"<td>{escape(one.text)}</td></tr>" for one in self.texts)
        return f"<p>{escape(repr(self)[1:-1])}</p><table>{rows}</table>"


def _finish(release: Release, progress: bool) -> Release:
    run = lib.dpi_release_run(release.c)
    bar = bar_of(run.n_texts * run.method.n_tokens, "token", progress)
    try:
        while release._advance():
            if bar is not None and release._begun:
                bar.update(release.progress["n_drawn"] - bar.n)
    except KeyboardInterrupt:
        with contextlib.suppress(Error):  # of a function of Python that the signal has ended
            release.stop()
        raise Interrupted(release) from None
    except Error as error:
        error.release = release
        raise
    finally:
        if bar is not None:
            bar.close()
    return release


def plan(model: Model, records: Any = None, *, ledger: Optional[Union[Ledger, Any]] = None,
         dataset: Optional[str] = None, grammar: Optional[str] = None,
         json_schema: Optional[Union[str, Mapping[str, Any]]] = None,
         logit_bias: Optional[Mapping[Any, float]] = None, **options: Any) -> Plan:
    """Settles every number of a run about `records`, of which it looks at their number alone.

    records: a table, a list, a path (Records), with text, unit and label naming its columns; None:
    a plan for n_records of them. Budget: epsilon at delta, or rho in zCDP. description says what
    the documents are, and is public, as all prompts are.

    grammar (GBNF), json_schema: the form of the texts. logit_bias: a dict of tokens and numbers.
    ledger, dataset: what the plan is compared with, and run() charges.

    Raises ArgumentError (a name, what was found, what is allowed), Unsupported, BudgetExceeded.
    """
    held = split_records(records, options)
    options.update(grammar=grammar, json_schema=json_schema, logit_bias=logit_bias)
    return Plan(_Settings(model, held, options), ledger_of(ledger), dataset)


def run(model: Model, records: Any, **options: Any) -> Release:
    """plan(model, records, **options).run(), with job= and progress= as there."""
    job, progress = options.pop("job", None), options.pop("progress", False)
    return plan(model, records, **options).run(job=job, progress=progress)


OPTIONS.document(plan)
RECORDS.document(plan)
__all__ = ["Interrupted", "Plan", "Release", "Text", "plan", "resume", "run", "status_name"]
