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
from ._records import Records
from ._release import Interrupted, Plan, Release, Text, plan, resume, run
from ._report import Claim, Report, Verification
from ._sampler import Sampler

__version__: str = text(lib.dpi_version())

__all__ = [
    "ArgumentError", "BudgetExceeded", "Cancelled", "Claim", "EntropyError", "Error", "FileError",
    "FormatError", "Interrupted", "Ledger", "LimitError", "Model", "NumericError", "OutOfMemory",
    "Plan", "Records", "Release", "Report", "Sampler", "Session", "StateError", "SystemFailure",
    "Text", "Tokenizer", "Unsupported", "Verification", "account", "plan", "resume", "run",
]
