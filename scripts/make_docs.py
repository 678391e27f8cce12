"""Make what the documentation takes from the code: the site's reference pages, and pictures below docs/.

    python scripts/make_docs.py            # all pictures, as `make docs` does
    python scripts/make_docs.py --pages    # speed.svg and help.svg alone, which take a second

scripts/make_site.py builds the reference pages into the site; none is kept. tests/conformance/test_docs.py holds both.
"""

from __future__ import annotations

import html
import inspect
import json
import re
import shutil
import subprocess
import sys
import tempfile
import types
from collections import Counter
from collections.abc import Callable
from pathlib import Path

try:
    import click
    from click.testing import CliRunner

    import weir
    from weir.cli.main import GROUPS, SUBCOMMANDS, TOP, all_commands, load_command, other_commands
    from weir.cli.main import weir as weir_command
    from weir.experiment.published import comparable, published, publisher_of
    from weir.measures import MEASURES
    from weir.measures.aliases import CUT, REFUSED, VALUE, WHOLE
    from weir.registry import described
    from weir.systems import PRESETS, RERANKERS, SYSTEMS, Sparse, usage
    from weir.systems.fusion import METHODS
except ModuleNotFoundError as lacking:
    sys.exit(
        f"make_docs.py: {lacking}; `make check` makes .venv, then run .venv/bin/python scripts/make_docs.py"
    )

DOCS = Path(__file__).resolve().parents[1] / "docs"
MINILM = 'dense("minilm", dtype="bf16")'
SHOWN = {
    "bm25": "#1f6f8b",
    MINILM: "#d9822b",
    f"rrf(bm25, {MINILM})": "#6b4c9a",
    f"bm25 >> score({MINILM}, depth=20)": "#5b8c3a",
}
"""What `make demo` runs, and the colours."""
TERMINAL_COLUMNS, TERMINAL_LINES = 80, 24


def measures_page() -> str:
    """Every measure with its settings and documentation."""
    lines = [
        "# Measures",
        "",
        "Made from the code by `make docs`. `@k` is required, `[@k]` may be left out.",
        "`condensed(nDCG@10)` is any measure on the ranking without the documents that nobody judged.",
        "What each makes of grades with fractions stands at its end; [grades](grades.md) has the rules.",
        "",
    ]
    for name in MEASURES:
        known = MEASURES.get(name)
        lines += [f"## {name}", "", f"`{name}{'@k' if known.cutoff == 'required' else '[@k]'}`", ""]
        for key, value in known.defaults().items():
            choices = dict(known.choices).get(key)
            allowed = f", one of {', '.join(map(repr, choices))}" if choices else ""
            allowed += ", or a table such as '1=1,2=3'" if key in dict(known.forms) else ""
            lines += [f"- setting `{key}={value!r}`{allowed}"]
        if known.of == "intents":
            lines += ["- needs judgments of intents: the second column of a TREC file names the intent"]
        lines += [
            *([""] if known.defaults() else []),
            inspect.getdoc(known.function) or "",
            "",
            known.takes,
            "",
        ]
    return "\n".join([*lines, *_names_of_others()])


def _names_of_others() -> list[str]:
    """What other tools call the measures."""
    lines = [
        "## Names of other tools",
        "",
        "Read wherever a measure is named, in any case and with or without `_` and `-`; results print our name. A rank",
        "follows as in `ndcg_cut_10`, `P.10`, `recall@100`, `map_at_10` or `nDCG10`. ranx's `map@10-l2` is",
        "`AP(rel=2)@10`, sentence-transformers' `cosine_ndcg@10` is `nDCG@10`; of ir-measures,",
        "`nDCG(dcg='exp-log2')@10` is `nDCG(gain='exp')@10` and `P(judged_only=True)@5` is `condensed(P@5)`.",
        "`Accuracy@10` is ir-measures'; `accuracy@10` (sentence-transformers) is `Success@10`, and so is what BEIR",
        "prints as `Accuracy@10`. ir-measures' `SetF(beta=b)` hands b to trec_eval, where it is the square:",
        "`SetF(beta=b**0.5)` here. Counts such as `num_rel` have a mean here and a total in trec_eval.",
        "",
        "| elsewhere | here |",
        "|---|---|",
    ]
    found = {f"{name}@k": ours.format("k") for name, ours in CUT.items()} | WHOLE
    found |= {f"{name}_0.1": ours.format("0.1") for name, ours in VALUE.items()}
    lines += [f"| `{name}` | `{found[name]}` |" for name in sorted(found)]
    lines += [
        f"| `{name.partition('[')[0].rstrip('.*')}` | refused: {why} |" for name, why in REFUSED.items()
    ]
    return [*lines, ""]


def systems_page() -> str:
    """Every system, and every preset with all that moves its numbers."""
    lines = ["# Systems", "", "Made from the code by `make docs`.", ""]
    lines += [
        "What is written `name(system, system, ...)` fuses the answers of two or more systems; `depth` is how many are",
        "taken from each for a query, None for 1000, or k where that is more. See [fusion.md](fusion.md).",
        "",
    ]
    for name in SYSTEMS:
        lines += [f"## {name}", "", f"`{usage(name)}`", ""]
        lines += [_about(SYSTEMS.get(name)), ""]
    lines += [
        "## Re-rankers",
        "",
        "After a system, as in `bm25 >> score(rm3, depth=50)`: the first `depth` documents of each ranking are scored",
        "anew, the others keep their order after them.",
        "",
    ]
    for name in RERANKERS:
        lines += [f"### {name}", "", f"`{usage(name)}`", ""]
        lines += [_about(RERANKERS.get(name)), ""]
    lines += [
        "## Presets of bm25",
        "",
        "| preset | reproduces | analyzer | k1 | b | lengths | fields | fields combine |",
    ]
    lines += ["|---|---|---|---|---|---|---|---|"]
    for preset, r in PRESETS.items():
        rule = "one field" if len(r.fields) == 1 else "sum"
        rule = rule if r.tie_breaker is None else f"best + {r.tie_breaker} x the others"
        fields = ", ".join(r.fields)
        lines += [
            f"| `{preset}` | {r.reproduces} | `{r.analyzer}` | {r.k1} | {r.b} | {r.lengths} | {fields} | {rule} |"
        ]
    return "\n".join([*lines, ""])


def _about(builder: Callable[..., object]) -> str:
    """The documentation of a system; its settings, where each has a line of its own, as a list."""
    lines, names = [""], "|".join(inspect.signature(builder).parameters)
    for line in described(builder).split("\n"):
        item = re.sub(rf"^({names}): ", r"- `\1`: ", line)
        listed = lines[-1].startswith(("- ", "    "))
        if line and lines[-1] and listed != item.startswith(("- ", "    ")):
            lines.append("")
        lines.append(item)
    return "\n".join(lines[1:])


def commands_page() -> str:
    """Every command with its arguments and options."""
    lines = ["# Commands", "", "Made from the code by `make docs`. `weir COMMAND --help` says the same.", ""]
    lines += [
        "Results go to standard output, notes and progress to standard error. The exit code is 0; 1 where a command",
        "says so, as `weir gate` does; 2 for a mistake or bad input, with one line that names it; 70 for a bug in Weir",
        "with one line that names a [report to send](security.md#reports); 71 where memory ran out, which is neither a",
        "mistake nor a bug; 130 when interrupted and 143 when terminated. bash, zsh and fish can",
        "[complete commands](quickstart.md#completion-in-the-shell).",
        "",
    ]
    for section, commands in TOP.items():
        listed = [f"- [`weir {name}`](#weir-{name}): {sentence}" for name, sentence in commands.items()]
        lines += [f"**{section}**", "", *listed, ""]
    outer = other_commands()
    every = all_commands()
    groups = GROUPS | {word: text for word, text in outer.items() if word not in every}
    listed = [f"- [`weir {word}`](#weir-{word}): {outer[word]}" for word in outer if word in every]
    lines += ["**Plug-ins**", "", *listed, ""]
    for group, sentence in groups.items():
        commands = SUBCOMMANDS.get(group, {}) | other_commands(group)
        listed = [
            f"- [`weir {group} {name}`](#weir-{group}-{name}): {text}" for name, text in commands.items()
        ]
        lines += [f"**weir {group}**: {sentence}", "", *listed, ""]
    lines = lines[:-1]
    for name in every:
        lines += ["", f"## weir {name}", "", *_command(name, load_command(name))]
    return "\n".join([*lines, ""])


def _command(name: str, command: click.Command) -> list[str]:
    context = click.Context(command, info_name=f"weir {name}")
    usage_line = " ".join([f"weir {name}", *filter(None, command.collect_usage_pieces(context))])
    options = [p for p in command.params if isinstance(p, click.Option)]
    lines = [f"`{usage_line}`", "", inspect.cleandoc(command.help or "").replace("\b\n", "")]
    if options:
        lines += ["", "| option | |", "|---|---|"]
    for option in options:
        form = ", ".join([*option.opts, *option.secondary_opts])
        kind = "" if option.is_flag or option.count else " " + option.make_metavar(context)
        help_text = " ".join((option.help or "").split())
        if option.show_default:
            shown = option.show_default if isinstance(option.show_default, str) else option.default
            help_text += f" Default: {shown}."
        lines.append(f"| `{form}{kind}` | {help_text} |")
    return [line if not line.startswith("| `") else _bars(line) for line in lines]


def _bars(row: str) -> str:
    """A row of a table whose second cell is its text; the bars of choices are escaped."""
    first, _, rest = row[2:-2].partition("` | ")
    return f"| {first.replace('|', chr(92) + '|')}` | {rest.replace('|', chr(92) + '|')} |"


def api_page() -> str:
    """Every public name by its kind, with its parameters and the first sentence of its documentation."""
    lines = [
        "# Python: every public name",
        "",
        "Made from the code by `make docs`. What is not listed here is internal; see",
        "[what may change](concepts.md#what-may-change-between-versions).",
        "The site shows the whole documentation of each name; `help(weir.evaluate)` does too.",
        "`weir.__version__` is the version.",
    ]
    sections: dict[str, list[tuple[str, object]]] = {kind: [] for kind in KINDS}
    sections |= {f"weir.{module}": [] for module in MODULES_BESIDE}
    for name in weir.__all__:
        value = getattr(weir, name)
        if not isinstance(value, (weir.Measure, types.ModuleType)):
            sections[_kind(value)].append((f"weir.{name}", value))
    top = {id(value) for members in sections.values() for _, value in members}
    for module, names in MODULES_BESIDE.items():
        place = getattr(weir, module)
        members = [(f"weir.{module}.{name}", getattr(place, name)) for name in sorted(names)]
        sections[f"weir.{module}"] += [
            (name, value)
            for name, value in members
            if id(value) not in top and not isinstance(value, weir.Measure)
        ]
    for heading, members in sections.items():
        lines += ["", f"## {heading}", ""]
        for name, value in members:
            summary = (inspect.getdoc(value) or "").split("\n\n")[0]
            lines += [
                f"### {name.rpartition('.')[2]}",
                "",
                f"`{name}{_parameters(value)}`",
                "",
                summary,
                "",
            ]
        lines = lines[:-1]
    return "\n".join([*lines, "", "## Measures", "", *_measures(), ""])


def _measures() -> list[str]:
    listed = []
    for name in weir.measures.library.__all__:
        base = getattr(weir, name).name
        listed.append(f"[`weir.{name}`](measures.md#{base.lower()})" + (f" ({base})" if base != name else ""))
    return [
        "Each is a name of `weir.measures` and of `weir`; one that is registered elsewhere too (`@weir.measure`).",
        "Measures are values: call one with its settings, cut it with `@`, print it; equal settings are equal values.",
        '`weir.nDCG(gain="exp") @ 10` and the text `"nDCG(gain=\'exp\')@10"` name the same.',
        "",
        ", ".join(listed) + ".",
    ]


KINDS = ("Functions", "Systems", "Re-rankers", "Values", "Errors")
MODULES_BESIDE = {
    "labels": weir.labels.__all__,
    "listings": weir.listings.__all__,
    "measures": weir.measures.__all__,
    "stats": weir.stats.__all__,
    "systems": METHODS.names(),
}
"""Public modules beside `weir`, and their public names; of `weir.systems` the fusion methods."""


def _kind(found: object) -> str:
    for kind, registry in (("Systems", SYSTEMS), ("Re-rankers", RERANKERS)):
        if any(registry.get(name) is found for name in registry):
            return kind
    if not isinstance(found, type):
        return "Functions"
    if issubclass(found, BaseException):
        return "Errors"
    return "Systems" if issubclass(found, Sparse) else "Values"


def _parameters(found: Callable[..., object]) -> str:
    """The names of the parameters, those with a default in brackets; none for a class that functions make."""
    if _kind(found) in ("Values", "Errors"):
        return ""
    known = inspect.signature(found).parameters.values()
    shown = [p.name if p.default is p.empty else f"[{p.name}]" for p in known]
    several = [
        f"{p.name}, {p.name}, ..." if p.kind is p.VAR_POSITIONAL else n
        for p, n in zip(known, shown, strict=True)
    ]
    return f"({', '.join(several)})"


def published_page() -> str:
    """Which system is compared with which published scores, and how many there are."""
    every, claims = published(), comparable()
    by_publisher = Counter(publisher_of(score.model).name for score in every)
    compared = Counter(publisher_of(score.model).name for score in claims)
    models: dict[str, dict[str, int]] = {}
    for score, system in claims.items():
        if not system.startswith("run("):
            of = models.setdefault(system, {})
            of[score.model] = of.get(score.model, 0) + 1
    files = sum(system.startswith("run(") for system in claims.values())
    lines = [
        "# Systems of published scores",
        "",
        f"Made from the code by `make docs`. Of {len(every):,} [published scores](published.md) {len(claims):,} are",
        "those of a system below, on a collection that Weir knows.",
        "",
        "| by | scores | compared by a system |",
        "|---|---:|---:|",
        *(f"| {name} | {count:,} | {compared[name]:,} |" for name, count in by_publisher.most_common()),
        "",
        "A model may have its name here or the hub's, and run on any engine. With another precision, length, prompt or",
        "store it is another system and claims nothing. A rank file of BIRCO's authors is its own row, such as",
        f'`run("e5_rank.pickle")` ({files:,} scores).',
        "",
        "| system | published as | scores |",
        "|---|---|---:|",
    ]
    for system, of in sorted(models.items()):
        lines.append(f"| `{system}` | {'; '.join(of)} | {sum(of.values()):,} |")
    return "\n".join([*lines, ""])


def speed_picture() -> str:
    """The front page's bar charts, drawn from the latest records of two benchmarks."""
    results = DOCS.parent / "benchmarks" / "results"
    scoring, indexing = (
        [json.loads(line) for line in (results / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()]
        for name in ("score_run", "bm25_synthetic")
    )
    run = [record for record in scoring if record["shape"] == "a"][-1]
    built = {r["engine"]: r["build"]["cpu_median"] for r in indexing if r["documents"] == 1_000_000}
    panels = {
        "Score a run of 7 million lines with 8 measures": {
            "Weir": run["weir-numba"]["seconds"]["cpu_median"],
            "Weir, numpy alone": run["weir-numpy"]["seconds"]["cpu_median"],
            "pytrec_eval": run["pytrec_eval"]["seconds"]["cpu_median"],
        },
        "Index 1 million documents for BM25": {
            "Weir": built["weir"],
            "tantivy": built["tantivy"],
            "bm25s": built["bm25s numba"],
        },
    }
    lines = [
        '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 720 230" font-family="sans-serif" font-size="14">',
        '<rect width="720" height="230" fill="#ffffff"/>',
    ]
    y = 24
    for title, seconds in panels.items():
        lines.append(f'<text x="12" y="{y}" font-weight="bold">{title}, seconds</text>')
        for name, value in seconds.items():
            y += 24
            width = 460 * value / max(seconds.values())
            colour = "#1f6f8b" if name.startswith("Weir") else "#b8b8b8"
            lines += [
                f'<text x="150" y="{y}" text-anchor="end">{name}</text>',
                f'<rect x="160" y="{y - 13}" width="{width:.1f}" height="16" fill="{colour}"/>',
                f'<text x="{168 + width:.1f}" y="{y}">{value:.2g}</text>',
            ]
        y += 40
    return "\n".join([*lines, "</svg>", ""])


def help_picture() -> str:
    """`weir --help` in a terminal of 80 columns and 24 lines."""
    shown = CliRunner().invoke(weir_command, ["--help"], prog_name="weir", terminal_width=80).output
    rows = ["$ weir --help", *shown.rstrip("\n").split("\n")]
    if len(rows) > TERMINAL_LINES or max(map(len, rows)) > TERMINAL_COLUMNS:
        raise SystemExit(f"weir --help does not fit {TERMINAL_COLUMNS} x {TERMINAL_LINES}")
    width, height = 12 + 8.43 * TERMINAL_COLUMNS, 16 + 18 * TERMINAL_LINES
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height}" '
        'font-family="monospace" font-size="14">',
        f'<rect width="{width:.0f}" height="{height}" rx="6" fill="#15181c"/>',
    ]
    for number, row in enumerate(rows):
        colour = "#e8ebee" if row[:1] in {" ", "$", ""} else "#7fd1c5"
        lines.append(
            f'<text x="8" y="{22 + 18 * number}" fill="{colour}" xml:space="preserve">{html.escape(row)}</text>'
        )
    return "\n".join([*lines, "</svg>", ""])


def picture(path: Path) -> None:
    """The result of `make demo` as a chart of means and intervals."""
    import matplotlib as mpl

    mpl.use("svg")
    import matplotlib.pyplot as plt

    from weir.api.results_folder import results as folder_rows
    from weir.core.short_names import short_names
    from weir.experiment.experiment import Experiment

    with tempfile.TemporaryDirectory() as folder:
        Experiment(("brook",), tuple(SHOWN), ("nDCG@10",)).execute(folder)
        rows = folder_rows(Path(folder))
    names = sorted({r.dataset for r in rows}, reverse=True)
    mpl.rcParams.update({"svg.hashsalt": "weir", "font.size": 9, "svg.fonttype": "none"})
    figure, axes = plt.subplots(figsize=(7.2, 5.0))
    labels = dict(zip(SHOWN, short_names(tuple(SHOWN)), strict=True))
    for number, (system, colour) in enumerate(SHOWN.items()):
        chosen = {r.dataset: r for r in rows if r.system == system}
        y = [names.index(n) + 0.2 * (1.5 - number) for n in names]
        means = [chosen[n].mean for n in names]
        spread = [
            [chosen[n].mean - chosen[n].low for n in names],
            [chosen[n].high - chosen[n].mean for n in names],
        ]
        axes.errorbar(
            means, y, xerr=spread, fmt="o", ms=4, color=colour, elinewidth=1.2, label=labels[system]
        )
    axes.set_yticks(range(len(names)), names)
    axes.set_xlim(0, 1)
    axes.set_xlabel("nDCG@10, mean and 95% interval over queries")
    axes.grid(axis="x", color="#dddddd", linewidth=0.6)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=4, frameon=False)
    figure.tight_layout()
    figure.savefig(path, metadata={"Date": None, "Creator": "weir"})


WHOLE_PAGES = {
    "light": (1440, "light", "screen", 0.45),
    "dark": (1440, "dark", "screen", 0.45),
    "narrow": (390, "light", "screen", 0.5),
    "print": (794, "light", "print", 0.5),
}
"""Pictures of a whole report: width in pixels, theme, medium, scale."""


def report_pictures(page: Path, docs: Path) -> None:
    """The head of a report and the whole of it, photographed in Debian's Chromium; nothing changes without that."""
    chromium = shutil.which("chromium")
    if chromium is None or not page.exists():
        print(
            "pictures of the report stay as they are: they take chromium and the report of make demo",
            file=sys.stderr,
        )
        return
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        opened = browser.new_page(viewport={"width": 1176, "height": 1180})
        opened.goto(page.as_uri())
        opened.wait_for_selector(".weir-row")
        opened.screenshot(path=docs / "report.png")
        for name, (width, theme, medium, scale) in WHOLE_PAGES.items():
            context = browser.new_context(viewport={"width": width, "height": 900}, device_scale_factor=scale)
            opened = context.new_page()
            opened.emulate_media(media=medium, color_scheme=theme)
            opened.goto(page.as_uri())
            opened.wait_for_selector(".weir-row", state="attached")
            opened.screenshot(path=docs / f"report-{name}.jpg", type="jpeg", quality=45, full_page=True)
            context.close()
        browser.close()


APP_PAGES = {
    "start": ("/", 1160, ""),
    "query": ("/c/brook-facts/q/12?systems=bm25,minilm,rrf(bm25, minilm)", 1180, "j Enter"),
    "judge": ("/c/brook-facts/q/12?systems=bm25,minilm,rrf(bm25, minilm)", 900, "e b"),
}
"""Pictures of the local page: address, height in pixels, keys pressed before."""


def app_pictures(results: Path, docs: Path) -> None:
    """Pages of `weir open`, photographed in Debian's Chromium; nothing changes without that."""
    chromium = shutil.which("chromium")
    if chromium is None or not results.exists():
        print("pictures of the page stay as they are: they take chromium and make demo", file=sys.stderr)
        return
    from playwright.sync_api import sync_playwright

    with (
        tempfile.TemporaryDirectory() as place,  # pools lie beside the results
        subprocess.Popen(
            [
                sys.executable,
                "-m",
                "weir",
                "open",
                shutil.copytree(results, Path(place, results.name)),
                "--port",
                "0",
                "--no-browser",
            ],
            stderr=subprocess.PIPE,
            text=True,
        ) as server,
        sync_playwright() as playwright,
    ):
        assert server.stderr is not None
        entry = server.stderr.readline().split()[-1]
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        for name, (address, height, keys) in APP_PAGES.items():
            page = browser.new_page(viewport={"width": 1440, "height": height})
            page.goto(entry)
            page.locator(".weir-grid sup").first.wait_for(timeout=120_000)  # the systems are compared
            page.goto(f"{entry.partition('/?')[0]}{address}")
            page.wait_for_load_state("networkidle")
            for key in keys.split():
                page.keyboard.press(key)
                page.wait_for_timeout(1000)  # what a key asks for begins later than the key
                page.wait_for_load_state("networkidle")
            page.screenshot(path=docs / f"app-{name}.jpg", type="jpeg", quality=70)
            page.close()
        browser.close()
        server.terminate()


PAGES = {
    "measures.md": measures_page,
    "systems.md": systems_page,
    "commands.md": commands_page,
    "api.md": api_page,
    "published-systems.md": published_page,
}
"""The reference pages of the site, by name."""
PICTURES = {"speed.svg": speed_picture, "help.svg": help_picture}
"""Pictures below docs/ that are made without a browser, by name."""

if __name__ == "__main__":
    for name, made in PICTURES.items():
        (DOCS / name).write_text(made(), encoding="utf-8")
    if "--pages" not in sys.argv:
        picture(DOCS / "brook.svg")
        report_pictures(DOCS.parent / "demo-results.html", DOCS)
        app_pictures(DOCS.parent / "demo-results", DOCS)
