"""What the browse screen needs of a session: the one of `rtui.server.browsing`, or one of fixed values in tests."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from typing import TYPE_CHECKING, Protocol

from rtui.analysis.facts import KeyFacts, RowFacts, Unknown
from rtui.keyspace.rows.ordering import Sort
from rtui.keyspace.store.namespace import Namespace
from rtui.keyspace.store.store import NamespaceStore
from rtui.keyspace.text.display import SafeText
from rtui.server.browsing_status import BrowsingStatus
from rtui.server.facts.preview.page import Page, Preview
from rtui.server.scan.run_control import RunControl
from rtui.server.wire.command_log import CommandLog
from rtui.server.wire.target import Target

if TYPE_CHECKING:  # it is imported with all that adds up
    from rtui.analysis.query.matches import Order
    from rtui.analysis.query.query import Query
    from rtui.analysis.query.terms import Fact
    from rtui.registry.registry import Registry
    from rtui.server.analysis_session import Analysed, AnalysisSource
    from rtui.server.facts.references import KeyReferences
    from rtui.server.health.session import Health
    from rtui.server.search.search import Search


class KeyWeights(Protocol):
    """Finds a fact of all keys directly in a namespace; `run` it once."""

    node: Namespace
    of: int
    weights: dict[bytes, float]

    @property
    def failure(self) -> SafeText | None:
        """Why not all could be asked."""

    async def run(self) -> None:
        """Ask about all keys, or look for them in the rows of the analysis."""


class Session(Protocol):
    """A keyspace being browsed: screens pull `revision`, `status` and `store`, and await what takes a round trip."""

    log: CommandLog
    """All commands that were sent."""

    @property
    def target(self) -> Target:
        """The server and its database."""

    @property
    def store(self) -> NamespaceStore:
        """The names that are shown; those of a filter are in another store than all."""

    def clock(self) -> float:
        """Return the time in seconds since the epoch, on the clock of the facts' timestamps."""

    @property
    def revision(self) -> int:
        """Grows whenever something that can be seen has changed."""

    @property
    def keeps_all_keys(self) -> bool:
        """Whether a filter shows some of the keys and showing all of them again costs no scan."""

    @property
    def analysis(self) -> AnalysisSource:
        """The analysis of the keyspace, made on first use."""

    @property
    def analysed(self) -> Analysed | None:
        """The latest figures of the analysis; None before there are any."""

    @property
    def health(self) -> Health:
        """How the server is, asked while somebody looks at it."""

    @property
    def status(self) -> BrowsingStatus:
        """Everything but the tree, now."""

    @property
    def lost_by_leaving(self) -> SafeText | None:
        """What is lost when rtui ends now, as a sentence; None for nothing."""

    def on_change(self, call: Callable[[], object]) -> None:
        """Have `call` called when the connection is lost or comes back."""

    async def start(self) -> None:
        """Connect and begin; raises ConnectFailure."""

    async def close(self) -> None:
        """End everything."""

    @property
    def control(self) -> RunControl:
        """Pauses, resumes and paces the scan; another scan, such as of a filter, has another one."""

    def yield_to_input(self) -> None:
        """Leave the event loop to what the user does just now; may be called from any thread."""

    async def filter(self, match: bytes | None, key_type: bytes | None = None) -> None:
        """Begin again with other names."""

    async def rescan(self) -> None:
        """Begin again."""

    def search(
        self, query: Query, columns: Sequence[Fact] = (), order: Order | None = None, *, asks_server: bool = False
    ) -> Search:
        """A search of all keys, which sends nothing before it is prepared.

        It is one in the rows of the analysis if they can answer, unless with `asks_server`.
        """

    async def lookup(self, name: bytes) -> bool | None:
        """Whether a key of this name exists; None when that was refused."""

    async def database_count(self) -> int | None:
        """How many databases the server has; None where it does not say."""

    async def open_namespace(self, node: Namespace) -> None:
        """Make a namespace one that can be listed, by a scan of its prefix if need be."""

    async def row_facts(self, keys: Sequence[bytes], *, with_more: bool = False) -> list[RowFacts]:
        """What listed keys show; `with_more` also length, encoding and idle time."""

    async def key_facts(self, key: bytes, row: RowFacts | None = None) -> KeyFacts:
        """What the key under the cursor shows; what is known from its `row` spares round trips."""

    def knows_column(self, sort: Sort) -> bool:
        """Whether the rows of the analysis tell by what keys are to be sorted."""

    def key_column(self, node: Namespace, sort: Sort, *, asks_server: bool = False) -> KeyWeights:
        """What finds the fact by which the keys directly in a namespace are to be sorted."""

    async def preview(self, facts: KeyFacts, page: Page | None = None) -> Preview:
        """A page of its value."""

    async def find_place(self, facts: KeyFacts, text: str) -> Page | Unknown:
        """The page that begins at a typed place in a value, or why there is none."""

    async def read_field(self, facts: KeyFacts, field: bytes, most_bytes: int) -> bytes | Unknown:
        """The whole value of one field of a hash of up to so many bytes, or why it is not read."""

    async def references(self, registry: Registry, facts: KeyFacts, preview: Preview) -> KeyReferences:
        """What a key points to and who should point to it, by the page of its value that is shown."""

    def string_windows(self, facts: KeyFacts) -> AsyncIterator[bytes | Unknown]:
        """A whole string piece by piece; where something keeps the rest from being read, that at the end."""
