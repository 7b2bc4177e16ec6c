"""The command `ampkit`. Torch is imported by the command that needs it, so that --help answers at once."""

from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer

from ampkit.errors import AmpkitError, LoopError

app = typer.Typer(
    help="PyTorch mixed precision: the course, its training loops and its instruments.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)


@contextmanager
def _errors_as_messages():
    try:
        yield
    except AmpkitError as error:
        typer.echo(f"Error: {error}", err=True)
        raise typer.Exit(2 if isinstance(error, LoopError) else 1) from None


@app.command()
def train(
    loop: Annotated[str, typer.Argument(help="fp32, bf16, fp16_no_scaler, fp16 or clipped", metavar="LOOP")],
    device: Annotated[str | None, typer.Option(help="cuda or cpu  [default: cuda if there is one]")] = None,
    steps: Annotated[int, typer.Option(min=1, help="training steps")] = 300,
    batch_size: Annotated[int, typer.Option(min=1, max=1400, help="images a step, of 1400")] = 128,
    seed: Annotated[int, typer.Option(min=0, help="of the weights and of the order of the images")] = 0,
    lr: Annotated[float, typer.Option(help="learning rate for a loss of weight 1")] = 0.1,
    loss_weight: Annotated[float, typer.Option(help="what the loss is multiplied by", show_default="2**-20")] = 2.0
    ** -20,
    init_scale: Annotated[float | None, typer.Option(help="first scale of the GradScaler  [default: 65536]")] = None,
    max_norm: Annotated[float | None, typer.Option(help="clip to this, for a loss of weight 1  [default: 1]")] = None,
    log: Annotated[Path | None, typer.Option(help="write a record for each step", metavar="FILE.jsonl")] = None,
) -> None:
    """Train a small model on the digits with one of the loops in ampkit/loops."""
    with _errors_as_messages():
        from ampkit.loops import rung

        rung(loop)  # before torch is imported: a typing error is answered at once
        numbers = {"--lr": lr, "--loss-weight": loss_weight, "--init-scale": init_scale, "--max-norm": max_norm}
        for option, value in numbers.items():
            if value is not None and not 0 < value < float("inf"):
                raise LoopError(f"{option} must be a finite number greater than 0, and is {value:g}.")
        if log is not None and not log.absolute().parent.is_dir():
            raise LoopError(f"--log {log}: there is no folder {log.absolute().parent} to write it to. Make it first.")

        from ampkit.loops.run import run

        run(
            loop,
            device=device,
            steps=steps,
            batch_size=batch_size,
            seed=seed,
            lr=lr,
            loss_weight=loss_weight,
            init_scale=init_scale,
            max_norm=max_norm,
            log=log,
        )


@app.command()
def lab(
    dir: Annotated[
        Path | None, typer.Option(help="your working copy  [default: ~/amp-course, or AMPKIT_COURSE_DIR]")
    ] = None,
    port: Annotated[int, typer.Option(min=1, max=65535, help="port of JupyterLab on this machine")] = 8888,
    browser: Annotated[bool, typer.Option("--browser/--no-browser", help="open a browser")] = True,
    prepare_only: Annotated[bool, typer.Option("--prepare-only", help="update the copy and stop")] = False,
) -> None:
    """Open the course in JupyterLab, on a working copy of your own that no update ever overwrites."""
    with _errors_as_messages():
        from ampkit.lab import run

        raise typer.Exit(run(dir, port=port, browser=browser, prepare_only=prepare_only))
