"""The dashboard that `asv publish` makes of asv's results, offline, and with a page *Defaults*.

The page is made of the result store in `out/results`. asv loads this module because `asv.conf.json`
lists it under `plugins`, for `asv run` too: what only publishing needs is imported there.
"""

from pathlib import Path
from typing import Any

from asv.console import log
from asv.publishing import OutputPublisher


class Defaults(OutputPublisher):  # type: ignore[misc]  # asv has no types
    """Writes the page, and takes asv's scripts and styles from installed packages."""

    name = "defaults"
    button_label = "Defaults"
    description = "Which strategy to use in every case that was measured"

    @classmethod
    def publish(cls, conf: Any, repo: Any, benchmarks: Any, graphs: Any, revisions: Any) -> None:
        """What asv calls after its own pages are written."""
        folder = Path(conf.html_dir)
        try:
            from plots.dashboard import offline, page
            from strategies.cli.common import DEFAULT_RESULTS
            from strategies.measuring import store

            offline.localize(folder)
            page.add(folder, store.load(DEFAULT_RESULTS), page.graphs_of(benchmarks, graphs))
        except (ImportError, LookupError, ValueError) as reason:
            log.warning(f"the dashboard remains without the page Defaults: {reason}")
