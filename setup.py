"""What pyproject.toml can't say: whether the compiled engine has to be built, may be built, or is left out.

RTUI_BUILD_ENGINE is `required` for the wheels of single platforms, which must not lack it, or `none` for the wheel of
all platforms. Otherwise rtui is installed without the engine where it can't be built.
"""

from __future__ import annotations

import os

from setuptools import Distribution, setup

ENGINE = os.environ.get("RTUI_BUILD_ENGINE", "optional")


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


setup(distclass=EngineDistribution)
