from __future__ import annotations

import pytest
from rich.text import Text

from rtui.keyspace.text.display import HOSTILE
from rtui.keyspace.text.glob import PatternError
from rtui.server.options import BrowseOptions
from rtui.server.wire.errors import ConnectionLost
from rtui.tui.app import RtuiApp
from rtui.tui.kit.command_screen import failure_notice, failure_text
from tests.tui.fixed_session import FixedSession

HELD = "s3cret\x1b]0;owned\x07"


def fail(password: str) -> None:
    raise KeyError(password)


def caught() -> Exception:
    try:
        fail(HELD)
    except KeyError as error:
        return error
    raise AssertionError


def test_a_failure_says_where_but_no_value() -> None:
    text = failure_text(caught())
    assert "KeyError" in text
    assert "in fail" in text
    assert "s3cret" not in text
    assert all(not HOSTILE.search(line) for line in text.split("\n"))


async def test_the_application_ends_with_those_words_and_without_a_traceback() -> None:
    app = RtuiApp(BrowseOptions(), FixedSession())
    left: list[object] = []
    with pytest.raises(KeyError):
        async with app.run_test() as pilot:
            await pilot.pause()
            app._handle_exception(caught())
            left = list(app._exit_renderables)
    assert [type(one) for one in left] == [Text]
    assert "s3cret" not in str(left[0])
    assert app.return_code == 1


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (ConnectionLost("the server closed the connection"), "the server closed the connection"),
        (PatternError("a pattern has at most 16 stars"), "a pattern has at most 16 stars"),
        (KeyError(HELD), "a fault of rtui itself (KeyError)."),
    ],
)
def test_a_notice_repeats_only_words_meant_to_be_read(error: Exception, text: str) -> None:
    assert failure_notice(error) == text
