"""The program of the bundle: rtui, or the Python that rtui starts for its workers, its demo and its embedded server.

Those call `sys.executable`, which is this program here, with Python's own -P or -I first; rtui has no such options.
"""

from __future__ import annotations

import runpy
import sys
from pathlib import Path


def main(arguments: list[str]) -> None:
    """Do what Python does with `-P -c CODE`, `-P -m MODULE` and `-I FILE`, for modules of the bundle; else run rtui."""
    if arguments[:1] not in (["-P"], ["-I"]):
        from rtui.cli.main import main  # noqa: PLC0415 - the others need little of it

        main()
    while arguments[0] in ("-P", "-I", "-S"):
        arguments = arguments[1:]
    what, *rest = arguments
    if what == "-c":
        sys.argv = [what, *rest[1:]]
        exec(compile(rest[0], "<string>", "exec"), {"__name__": "__main__"})  # noqa: S102 - rtui's own program
        return
    folder = Path(sys._MEIPASS)  # type: ignore[attr-defined] # PyInstaller's place of the modules
    name = rest.pop(0) if what == "-m" else ".".join(Path(what).relative_to(folder).with_suffix("").parts)
    sys.argv = [name, *rest]
    runpy.run_module(name, run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main(sys.argv[1:])
