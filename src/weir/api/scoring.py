"""Score run files with the same judgments, as `weir eval` shows them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from weir import datasets
from weir.api.evaluation import conventions_of, gated_by
from weir.api.given import copy_notes, run_paths
from weir.api.result_set import ResultSet
from weir.api.rows import ROWS, labels_of
from weir.core.scores import GroupedScores, Note, Row, Scores
from weir.datasets.scoring_rules import ScoringRules, judged_by
from weir.errors import BadValue
from weir.files.frames import qrels_from
from weir.files.runs import judgments_name, read_run
from weir.files.score_files import values_csv, values_json, values_lines
from weir.measures import DEFAULT_MEASURES, Measure, measures_of
from weir.measures.evaluate import DEFAULT, Conventions, each_file, judgments_for, names_of_runs
from weir.stats.score_rows import result_rows, rows_by_group, scored, system_notes

if TYPE_CHECKING:
    from weir.datasets.load import Dataset
    from weir.stats.paired_sets import WithinGroups
    from weir.stats.threshold import Abstention


@dataclass(frozen=True)
class FileScores:
    """Scores of several run files by the same judgments, with notes."""

    dataset: str
    """Name of the judgments."""
    files: Mapping[str, Path]
    """Run files that can be scored, by name."""
    scores: Mapping[str, Scores]
    by_pair: Mapping[str, Scores]
    """p-MRR by name; empty unless requested."""
    rules: ScoringRules
    notes: tuple[Note, ...]
    left_out: tuple[Note, ...]
    """Why files are left out."""
    titles: Mapping[str, str]
    """{name: label shown instead}."""

    def rows(self, by: object = None) -> ResultSet[Row]:
        """Return a mean for each run and measure; p-MRR comes last.

        by: groups of queries as `Scores.by` takes them; adds means of each group and over the groups.

        Raises BadValue if no query has a group, FormatError or UnknownName for unreadable groups.
        """
        rows, notes = list[Row](), list[Note]()
        if by is None:
            rows = [row for name, one in self.scores.items() for row in result_rows(one, self.dataset, name)]
        for name, grouped in self._grouped(by) if by is not None else ():
            notes += grouped.notes()
            rows += rows_by_group(grouped, self.dataset, name)
        rows += [row for name, one in self.by_pair.items() for row in result_rows(one, self.dataset, name)]
        rows = [replace(row, title=self.titles.get(row.system, row.title)) for row in rows]
        return ResultSet(ROWS, tuple(rows), (*notes, *self.notes), self.left_out)

    def within(self, by: object) -> ResultSet[WithinGroups]:
        """Return mean, worst, best and spread of measures within groups of queries, averaged, for each run.

        Raises BadValue if no query has a group.
        """
        from weir.stats.paired_sets import WITHIN_GROUPS, within_groups

        several = [
            replace(one, system=name) for name, grouped in self._grouped(by) for one in within_groups(grouped)
        ]
        return ResultSet(WITHIN_GROUPS, tuple(several), (*self.label_notes, *self.notes), self.left_out)

    def abstentions(self, confidence: str) -> Iterator[ResultSet[Abstention]]:
        """Yield, for each run, the means of measures as the least confident queries are left out.

        confidence: "max", "std" or "diff1". Raises UnknownName for another.
        """
        from weir.stats.threshold import ABSTENTIONS, abstention

        for name, scores in self.scores.items():
            run = self.rules.ranked(read_run(self.files[name]))
            yield ResultSet(ABSTENTIONS, tuple(abstention(run, scores, confidence)))

    def by_query(self, form: str | None) -> list[tuple[tuple[str, ...], Scores]]:
        """Return (names, scores by query) of each run, p-MRR last.

        form: "csv" names dataset and run; any other the run, if there are several.
        """
        return [
            ((self.dataset, name) if form == "csv" else (name,) * (len(part) > 1), one)
            for part in (self.scores, self.by_pair)
            for name, one in part.items()
        ]

    @property
    def label_notes(self) -> tuple[Note, ...]:
        """Return notes on the use of a model's labels."""
        uses = (scores.labels for scores in self.scores.values())
        return tuple(dict.fromkeys(Note(f"labels: {use.sentence}") for use in uses if use is not None))

    def _grouped(self, by: object) -> Iterator[tuple[str, GroupedScores]]:
        for name, one in self.scores.items():
            yield name, GroupedScores.of(one, datasets.load.query_groups(by, one.queries, self.rules.dataset))


def score_files(
    qrels: str,
    runs: Iterable[Path],
    measures: Iterable[Measure | str] = DEFAULT_MEASURES,
    conventions: Conventions | str | Mapping[str, Any] = DEFAULT,
    *,
    labels: object = None,
    least: str = "binary kappa 0.4",
    collection: str | Path | Dataset | None = None,
    signs: str | None = None,
    titles: Sequence[str] = (),
) -> FileScores:
    """Score run files, or the run files in results folders, by the same judgments.

    signs: endings of the identifiers of a query under two instructions, such as -og:-changed, for p-MRR.
    titles: names to show for runs, such as "tuned=bm25".

    Other parameters as for `evaluate`. Omits a file that cannot be scored, with a note; raises the WeirErrors of
    reading and scoring if none is left.
    """
    requested, wanted = measures_of(measures), conventions_of(conventions)
    given, about = judged_by(qrels, collection)
    paths = run_paths(runs, about)
    rules = ScoringRules.of(about, wanted)
    every = judgments_for(given, requested)
    judgments = rules.counted(every)
    gate = None if labels is None else gated_by(judgments, labels, least)
    judgments = judgments if gate is None else gate.qrels
    by_file, refused = each_file(
        paths, lambda run: scored(judgments, partial(rules.join_run, run), requested, rules.conventions, gate)
    )
    files = dict(zip(names_of_runs(list(by_file)), by_file, strict=True))
    scores = {name: by_file[run] for name, run in files.items()}
    by_pair = {} if signs is None else p_mrr_of_files(given, list(by_file), signs, rules)
    called = labels_of(titles, files)
    notes = [*copy_notes((str(path), path) for path in paths)]
    notes += system_notes({called.get(name, name): one for name, one in scores.items()})
    if rules.dataset is not None:
        from weir.api.collection_notes import collection_notes, restriction_notes

        notes += restriction_notes(rules.dataset)
        notes += collection_notes(rules.dataset, map(str, requested), wanted.self_matches == "drop")
        notes += rules.dangling_notes(every)
    if rules.dataset is not None or labels is not None:
        from weir.datasets.label_texts import text_notes

        notes += text_notes(rules.dataset or given, given, labels)
    left_out = tuple(Note(f"left out: {reason}") for reason in refused)
    return FileScores(judgments_name(qrels), files, scores, by_pair, rules, tuple(notes), left_out, called)


def p_mrr_of_files(qrels: object, runs: Sequence[Path], signs: str, rules: ScoringRules) -> dict[str, Scores]:
    """Return {run name: p-MRR scores} of run files.

    signs: endings of original and changed queries' identifiers, such as "-og:-changed".

    Raises BadValue for other signs, and if no document becomes irrelevant.
    """
    from weir.stats import paired_sets

    ends = signs.split(":")
    if len(ends) != 2 or not all(ends):
        raise BadValue(f"`signs={signs!r}`: expected how both identifiers end, such as -og:-changed")
    judgments = qrels_from(qrels)
    return {
        name: paired_sets.p_mrr(judgments, rules.ranked(read_run(run)), signs=(ends[0], ends[1]))
        for name, run in zip(names_of_runs(runs), runs, strict=True)
    }


def values_text(
    placed: Iterable[tuple[tuple[str, ...], Scores]], form: str | None, cell: Callable[[str], str] = str
) -> str:
    """Return the scores of each query as text, one line for each value, beginning with the names.

    form: "csv" with a head, "json" lines, else tab-separated lines.
    placed: (names, scores) of each result; names of dataset or system, or () for neither.
    cell: escapes a cell of the tab-separated lines.
    """
    if form == "csv":
        return values_csv(placed)
    if form == "json":
        return "\n".join(values_json(placed))
    return "\n".join("\t".join(map(cell, cells)) for cells in values_lines(placed))
