"""How an analysis begins on its screen: anew or where one was left, of every key or a sample, asking which facts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rtui.analysis.humanize import keys
from rtui.analysis.report.document import CoverageKind, Report
from rtui.keyspace.text.display import SafeText
from rtui.server.analysis_session import AnalysisSource
from rtui.tui.analyse import screen_lines
from rtui.tui.kit.choice import ChoiceScreen
from rtui.tui.kit.command import Condition
from rtui.tui.kit.run_screen import RunScreen
from rtui.tui.kit.styled_text import literal

if TYPE_CHECKING:
    from rtui.server.saved_analysis import SavedAnalysis


class BeginningScreen(RunScreen[bytes | None]):
    """The part of the screen that begins an analysis, after a question where something would be lost."""

    source: AnalysisSource
    report: Report | None
    """The report that is shown, None while it has no keys."""

    def show_again(self) -> None:
        """Show everything again, whatever has changed."""
        raise NotImplementedError

    def action_begin(self, *, estimate: bool = False) -> None:
        """Read every key, or a sample; ask first where it costs money, or was left in an earlier run to go on later."""
        if Condition.READY not in self.conditions:
            return

        def chosen(choice: int | None) -> None:
            if choice == 1 and Condition.READY in self.conditions:
                self._begin(estimate=estimate)

        if self.source.bill is None:
            self._begin(estimate=estimate)
        else:
            self.app.push_screen(ChoiceScreen(self.source.bill, screen_lines.LEAVE_OR_PAY), chosen)

    def _begin(self, *, estimate: bool) -> None:
        if self.source.may_have_left and not estimate:
            self.run_worker(
                self._begin_or_go_on(), group="begin", exclusive=True, exit_on_error=False, description="begin"
            )
        else:
            self.source.begin(estimate=estimate)
            self.show_soon()

    async def _begin_or_go_on(self) -> None:
        """Ask whether an analysis that was left is to go on; begin anew where it can't, and say why."""
        left = await self.source.left_before()

        def begin(saved: SavedAnalysis | None) -> None:
            if Condition.READY in self.conditions:
                self.source.begin(saved=saved)
                self.show_soon()

        def chosen(choice: int | None) -> None:
            if choice == 1:
                self.run_worker(self.source.forget_left(), exit_on_error=False, description="forget")
            if choice is not None:
                begin(left if choice == 0 and not isinstance(left, str) else None)

        if left is None or isinstance(left, str):
            if left is not None:
                self.notify(left, title="A new analysis", markup=False, timeout=10)
                await self.source.forget_left()
            begin(None)
        else:
            self.app.push_screen(ChoiceScreen(left.title, screen_lines.GO_ON_OR_ANEW), chosen)

    def action_estimate(self) -> None:
        """Read a sample; ask first where an estimate would replace exact figures."""
        report = self.report
        if report is None or report.head.coverage.kind is not CoverageKind.EXACT:
            self.action_begin(estimate=True)
        elif Condition.READY in self.conditions:

            def chosen(choice: int | None) -> None:
                if choice == 1:
                    self.action_begin(estimate=True)

            title = SafeText(f"The figures of {keys(report.head.coverage.counted_keys)} are exact")
            self.app.push_screen(ChoiceScreen(title, screen_lines.KEEP_OR_REPLACE), chosen)

    def action_columns(self) -> None:
        """Choose what the next analysis asks of which keys."""
        if Condition.READY in self.conditions:
            choices = screen_lines.column_choices(self.source.given_columns)

            def chosen(choice: int | None) -> None:
                if choice is not None:
                    self.source.choose_columns(choices[choice][0])
                    self.show_again()
                    if self.report is not None:
                        self.notify(choices[choice][1], title="The next analysis asks", markup=False, timeout=4)

            self.app.push_screen(ChoiceScreen(literal("What to ask"), [text for _, text in choices]), chosen)
