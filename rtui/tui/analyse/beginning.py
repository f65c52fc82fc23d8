"""How an analysis begins on its screen: of every key or a sample, asking which facts."""

from __future__ import annotations

from rtui.analysis.humanize import keys
from rtui.analysis.report.document import CoverageKind, Report
from rtui.keyspace.text.display import SafeText
from rtui.server.analysis_session import AnalysisSource
from rtui.tui.analyse import screen_lines
from rtui.tui.kit.choice import ChoiceScreen
from rtui.tui.kit.command import Condition
from rtui.tui.kit.run_screen import RunScreen
from rtui.tui.kit.styled_text import literal


class BeginningScreen(RunScreen[bytes | None]):
    """The part of the screen that begins an analysis, after a question where something would be lost."""

    source: AnalysisSource
    report: Report | None
    """The report that is shown, None while it has no keys."""

    def show_again(self) -> None:
        """Show everything again, whatever has changed."""
        raise NotImplementedError

    def action_begin(self, *, estimate: bool = False) -> None:
        """Read every key, or a sample; ask first where it costs money."""
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
        self.source.begin(estimate=estimate)
        self.show_soon()

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
