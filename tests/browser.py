"""A Chromium without a window, driven by the DevTools protocol over a pair of pipes."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from base64 import b64decode
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

PROGRAM: Final = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)

_OPTIONS: Final = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--disable-background-networking",
    "--disable-component-update", "--no-first-run", "--hide-scrollbars", "--remote-debugging-pipe",
)  # fmt: skip
_KEYS: Final = {"Tab": 9, "Enter": 13, "Escape": 27, " ": 32, "ArrowRight": 39, "ArrowDown": 40}


class Tab:
    """A tab, with all that its pages said on the console and asked for besides themselves."""

    def __init__(self, sent: int, answers: int) -> None:
        self._sent, self._answers, self._buffer, self._last = sent, answers, b"", 0
        self._session: str | None = None
        self.messages: list[str] = []
        self.requests: list[str] = []
        self._events: list[str] = []
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")

    def call(self, method: str, **given: object) -> Any:
        """Return the result of a method of the protocol."""
        self._last += 1
        asked: dict[str, object] = {"id": self._last, "method": method, "params": given}
        if self._session is not None:
            asked["sessionId"] = self._session
        os.write(self._sent, json.dumps(asked).encode() + b"\0")
        while (answer := self._next()).get("id") != self._last:
            pass
        assert "error" not in answer, (method, answer["error"])
        return answer["result"]

    def _next(self) -> dict[str, Any]:
        """Return the next message, of which events are kept."""
        while b"\0" not in self._buffer:
            part = os.read(self._answers, 1 << 16)
            assert part, "the browser has ended"
            self._buffer += part
        text, _, self._buffer = self._buffer.partition(b"\0")
        message: dict[str, Any] = json.loads(text)
        given = message.get("params", {})
        match message.get("method"):
            case "Runtime.consoleAPICalled":
                self.messages.append(" ".join(str(one.get("value")) for one in given["args"]))
            case "Runtime.exceptionThrown":
                self.messages.append(str(given["exceptionDetails"]))
            case "Log.entryAdded":
                self.messages.append(given["entry"]["text"])
            case "Network.requestWillBeSent":
                self.requests.append(given["request"]["url"])
            case str(method):
                self._events.append(method)
        return message

    def open(self, page: Path, width: int = 1600, *, is_dark: bool = False) -> None:
        """Open a page, in a window of 1,000 lines of pixels."""
        scheme = {"name": "prefers-color-scheme", "value": "dark" if is_dark else "light"}
        self.call("Emulation.setEmulatedMedia", media="", features=[scheme])
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=1000, deviceScaleFactor=1, mobile=False)
        self._events.clear()
        self.call("Page.navigate", url=page.as_uri())
        while "Page.loadEventFired" not in self._events:
            self._next()

    def run(self, script: str) -> Any:
        """Return the value of an expression of JavaScript."""
        found = self.call("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in found, found["exceptionDetails"]
        return found["result"].get("value")

    def press(self, *keys: str) -> None:
        """Press keys, or type a character each; with `⇧` in front Shift is held."""
        for key in keys:
            name, modifiers = key.removeprefix("⇧"), 8 * key.startswith("⇧")
            code = _KEYS.get(name, ord(name[0].upper()))
            text = {"text": {"Enter": "\r"}.get(name, name)} if name == "Enter" or len(name) == 1 else {}
            whole: dict[str, object] = {"key": name, "windowsVirtualKeyCode": code, "modifiers": modifiers}
            self.call("Input.dispatchKeyEvent", type="keyDown", **whole, **text)
            self.call("Input.dispatchKeyEvent", type="keyUp", **whole)

    def picture(self, to: Path, top: int = 0, height: int | None = None) -> None:
        """Write a PNG of the page from `top` on, to its end without a `height`."""
        size = self.call("Page.getLayoutMetrics")["cssContentSize"]
        clip = {"x": 0, "y": top, "width": size["width"], "height": height or size["height"] - top, "scale": 1}
        found = self.call("Page.captureScreenshot", captureBeyondViewport=True, clip=clip)
        to.write_bytes(b64decode(found["data"]))

    def printed(self) -> bytes:
        """Return the page as a PDF on A4."""
        return b64decode(self.call("Page.printToPDF", preferCSSPageSize=True, printBackground=False)["data"])


@contextmanager
def browser(folder: Path) -> Iterator[Tab]:
    """Start a browser with an empty profile in this folder, and end it."""
    assert PROGRAM is not None
    hears, sent = os.pipe()
    answers, says = os.pipe()
    words = [PROGRAM, *_OPTIONS, f"--user-data-dir={folder}"]
    with subprocess.Popen(
        ["bash", "-c", f'exec 3<&{hears} 4>&{says}; exec "$@"', "bash", *words],
        pass_fds=(hears, says),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    ) as process:
        os.close(hears)
        os.close(says)
        try:
            yield Tab(sent, answers)
        finally:
            os.close(sent)
            process.terminate()
            os.close(answers)
