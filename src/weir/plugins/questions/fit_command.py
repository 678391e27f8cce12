"""The options of `weir audit --fit`."""

from __future__ import annotations

from functools import wraps
from pathlib import Path

import click
from click.core import ParameterSource

import weir
from weir import api
from weir.cli.options import NAME, OUTPUT, Given, options
from weir.cli.terminal import present, say


@click.command("audit")
@click.option(
    "--fit", is_flag=True, help="Say in one word whether this can show a change, and because of what."
)
@options("weir.plugins.questions.fitness.fitness", "change measures systems repeats same by labels", "fit_given",
         before="With --fit: ", labels={"type": NAME, "flags": "--other-labels", "metavar": "QRELS"})  # fmt: skip
@click.option("--save-noise", type=OUTPUT, metavar="FILE",
              help="With --fit: Write how systems move by themselves, for --noise of weir gate.")  # fmt: skip
def fit_options(
    targets: tuple[str, ...],
    fit: bool,
    fit_given: Given,
    save_noise: Path | None,
    given: Given,
    form: str | None,
) -> int:
    """Print whether queries and judgments can show a change, save their noise if asked, and return the exit
    code."""
    with api.progress.Progress() as progress:
        found = weir.fitness(*targets, **fit_given, **given, progress=progress)
    if save_noise is not None:
        noises = [one for fitness in found for one in fitness.noise]
        if not noises:
            raise click.UsageError("--save-noise goes with --repeats or --same, which ask a system again")
        from weir.plugins.questions.noise import NOISES

        weir.ResultSet(NOISES, tuple(noises)).save(save_noise)
        of = {one.system for one in noises}
        say(f"{save_noise}: how {', '.join(sorted(of))} moves; weir gate ... --noise {save_noise}")
    return present(found, form)


def with_fit(command: click.Command) -> click.Command:
    """Return the command `weir audit` with the option --fit, which replaces the audit."""
    own = [parameter.name for parameter in fit_options.params]
    [place] = [parameter.name for parameter in command.params if "--collection" in parameter.opts]
    plain, fit = command.callback, fit_options.callback
    assert plain is not None
    assert fit is not None
    assert place is not None

    @wraps(plain)
    def fit_or_audit(**values: object) -> object:
        context = click.get_current_context()
        typed = {name for name in values if context.get_parameter_source(name) is not ParameterSource.DEFAULT}
        mine = {name: values.pop(name) for name in own if name is not None}
        if not mine["fit"]:
            if typed & set(mine):
                raise click.UsageError("--change and the options beside it go with --fit")
            return plain(**values)
        kept = {"targets", place, "form"}
        if others := sorted(typed & values.keys() - kept):
            names = [p.opts[0] for p in command.params if p.name in others]
            raise click.UsageError(f"--fit is an audit of its own; leave out {', '.join(names)}")
        given = {"collection": values[place]} if place in typed else {}
        return fit(targets=values["targets"], given=given, form=values["form"], **mine)

    help_text = f"{command.help}\n\n    With --fit the exit code is 0 for fit and 1 for unfit."
    return click.Command(
        command.name, params=[*command.params, *fit_options.params], callback=fit_or_audit, help=help_text
    )
