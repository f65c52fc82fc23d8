"""What pyproject.toml can't say of the compiled engine: which compiler builds it, and when it is built again.

Where there is no C compiler, that of Zig is installed to build it.
"""

from __future__ import annotations

import os
import shutil
import sys
import sysconfig
from pathlib import Path

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext

HAS_COMPILER = (
    bool(os.environ.get("CC")) or shutil.which((sysconfig.get_config_var("CC") or "cc").split()[0]) is not None
)
"""Whether there is a C compiler; else that of Zig, which pip installs, takes its place."""

SOURCES = ("pyproject.toml", "setup.py", "rtui/server/engine/*.pyx", "rtui/server/engine/*.pxd")
"""Files that an extension is built of."""


class BuildChanged(build_ext):
    """Builds extensions side by side; one of a checkout that is installed again only when a source is newer than it."""

    def initialize_options(self) -> None:
        """Let each processor compile an extension of its own."""
        super().initialize_options()
        self.parallel = os.cpu_count()

    def build_extension(self, ext: Extension) -> None:
        """Build the extension, or keep the one that lies in the checkout."""
        built = Path(self.get_ext_filename(ext.name))
        if self.editable_mode and built.exists() and built.stat().st_mtime > newest():
            kept = Path(self.get_ext_fullpath(ext.name))
            kept.parent.mkdir(parents=True, exist_ok=True)
            self.copy_file(str(built), str(kept))
            return
        if "-O" in os.environ.get("CFLAGS", ""):
            ext.extra_compile_args = []  # they would come after it, and win
        super().build_extension(ext)


def newest() -> float:
    """When a source was changed last."""
    return max(path.stat().st_mtime for pattern in SOURCES for path in Path().glob(pattern))


if not HAS_COMPILER:
    zig = f"{sys.executable} -m ziglang cc"
    os.environ["CC"], os.environ["LDSHARED"] = zig, f"{zig} -shared"

setup(cmdclass={"build_ext": BuildChanged}, setup_requires=[] if HAS_COMPILER else ["ziglang==0.15.1"])
