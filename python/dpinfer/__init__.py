"""dpinfer: differentially private text about sensitive documents.

    import dpinfer

    model = dpinfer.Model("qwen2.5-0.5b-instruct.gguf")
    plan = dpinfer.plan(model, frame, text="letter", unit="patient_id", epsilon=2, texts=10,
     description="hospital discharge letters")
    print(plan)
    release = plan.run()
    release.to_pandas()
"""

from __future__ import annotations

from . import account
from ._ledger import Ledger
from ._library import (
    ArgumentError,
    BudgetExceeded,
    Cancelled,
    EntropyError,
    Error,
    FileError,
    FormatError,
    LimitError,
    NumericError,
    OutOfMemory,
    StateError,
    SystemFailure,
    Unsupported,
    lib,
    text,
)
from ._model import Model, Session, Tokenizer
from ._program import Evaluation, Generated, audit, command, evaluate, generate
from ._records import Records
from ._release import Interrupted, Plan, Release, Text, plan, resume, run
from ._report import Claim, Report, Verification
from ._sampler import Sampler
from ._work import (
    Certificate,
    Evolution,
    Perturber,
    Steering,
    Training,
    augpe,
    file_claim,
    finetune,
    perturb,
    steer,
    verify_file,
)

__version__: str = text(lib.dpi_version())

__all__ = [
    "ArgumentError",
    "BudgetExceeded",
    "Cancelled",
    "Certificate",
    "Claim",
    "EntropyError",
    "Error",
    "Evaluation",
    "Evolution",
    "FileError",
    "FormatError",
    "Generated",
    "Interrupted",
    "Ledger",
    "LimitError",
    "Model",
    "NumericError",
    "OutOfMemory",
    "Perturber",
    "Plan",
    "Records",
    "Release",
    "Report",
    "Sampler",
    "Session",
    "StateError",
    "Steering",
    "SystemFailure",
    "Text",
    "Tokenizer",
    "Training",
    "Unsupported",
    "Verification",
    "account",
    "audit",
    "augpe",
    "command",
    "evaluate",
    "file_claim",
    "finetune",
    "generate",
    "perturb",
    "plan",
    "resume",
    "run",
    "steer",
    "verify_file",
]
