"""python -m dpinfer: the program of this package, with its arguments."""

from __future__ import annotations

import os
import sys
from typing import NoReturn

from ._program import PROGRAM


def main() -> NoReturn:
    os.execv(PROGRAM, ["dpinfer", *sys.argv[1:]])


if __name__ == "__main__":
    main()
