"""What pyproject.toml can't say: whether the compiled engine has to be built, may be built, is there or is left out.

Where there is no C compiler, that of Zig is installed to build it. RTUI_BUILD_ENGINE is `required` for the wheels of
single platforms, which must not lack it, or `none` for the wheel of all platforms. Otherwise rtui is installed without
the engine where it can't be built.
"""

from __future__ import annotations

import os
import shutil
import sys
import sysconfig
from pathlib import Path

from setuptools import Distribution, Extension, setup
from setuptools.command.build_ext import build_ext

ENGINE = os.environ.get("RTUI_BUILD_ENGINE", "optional")

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
        else:
            super().build_extension(ext)


def newest() -> float:
    """When a source was changed last."""
    return max(path.stat().st_mtime for pattern in SOURCES for path in Path().glob(pattern))


class EngineDistribution(Distribution):
    """Has the extensions of pyproject.toml as RTUI_BUILD_ENGINE wants them."""

    def parse_config_files(self, *args: object, **options: object) -> None:
        """Read pyproject.toml, then change what it says about extensions."""
        super().parse_config_files(*args, **options)
        if ENGINE not in {"required", "optional", "none"}:
            raise SystemExit(f"RTUI_BUILD_ENGINE is required, optional or none, not {ENGINE}")
        if ENGINE == "none":
            self.ext_modules = None
        for extension in self.ext_modules or ():
            extension.optional = ENGINE == "optional"
            if "-O" in os.environ.get("CFLAGS", ""):
                extension.extra_compile_args = []  # they would come after it, and win


if not HAS_COMPILER:
    zig = f"{sys.executable} -m ziglang cc"
    os.environ["CC"], os.environ["LDSHARED"] = zig, f"{zig} -shared"

setup(
    distclass=EngineDistribution,
    cmdclass={"build_ext": BuildChanged},
    setup_requires=[] if HAS_COMPILER or ENGINE == "none" else ["ziglang==0.15.1"],
)
