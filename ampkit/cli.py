"""The command `ampkit`. Torch is imported by the command that needs it, so that --help answers at once."""

from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer

from ampkit.errors import AmpkitError, LoopError, OutputError
from ampkit.loops import LADDER
from ampkit.output import writable

__all__ = ["app"]

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
        raise typer.Exit(2 if isinstance(error, LoopError | OutputError) else 1) from None


@app.command()
def train(
    loop: Annotated[str, typer.Argument(help=", ".join(loop.name for loop in LADDER), metavar="LOOP")],
    model: Annotated[str, typer.Option(help="a name, package.module:callable or file.py:callable")] = "mlp",
    data: Annotated[str | None, typer.Option(help="digits, text, cifar10, synthetic", show_default="what fits")] = None,
    data_dir: Annotated[Path | None, typer.Option(help="where torchvision's cifar10 is", metavar="FOLDER")] = None,
    input: Annotated[str | None, typer.Option(help="for a model of your own: f32[64,3,32,32]", metavar="SPEC")] = None,
    device: Annotated[str | None, typer.Option(help="cuda or cpu", show_default="cuda if there is one")] = None,
    steps: Annotated[int, typer.Option(min=1, help="training steps")] = 300,
    batch_size: Annotated[int | None, typer.Option(min=1, help="examples a batch", show_default="the model's")] = None,
    accumulate: Annotated[int | None, typer.Option(min=1, help="batches a step, where a loop accumulates")] = None,
    seed: Annotated[int, typer.Option(min=0, help="of the weights and of the order of the data")] = 0,
    lr: Annotated[float | None, typer.Option(help="for a loss of weight 1", show_default="the model's")] = None,
    loss_weight: Annotated[
        float | None, typer.Option(help="what the loss is multiplied by", show_default="2**-20 on the digits, else 1")
    ] = None,
    init_scale: Annotated[
        float | None, typer.Option(help="first scale of the GradScaler", show_default="65536")
    ] = None,
    max_norm: Annotated[
        float | None, typer.Option(help="clip to this, for a loss of weight 1", show_default="1")
    ] = None,
    precision: Annotated[str | None, typer.Option(help="of the loop complete: fp32, bf16-mixed, …")] = None,
    backend: Annotated[str | None, typer.Option(help="of torch.compile", show_default="inductor")] = None,
    checkpoint: Annotated[Path | None, typer.Option(help="save here, and go on from here", metavar="FILE")] = None,
    save_every: Annotated[int, typer.Option(min=1, help="steps from one checkpoint to the next")] = 100,
    log: Annotated[Path | None, typer.Option(help="write a record for each step", metavar="FILE.jsonl")] = None,
) -> None:
    """Train a model with one of the loops in ampkit/loops: a small one on the digits, if nothing else is asked for."""
    with _errors_as_messages():
        from ampkit.loops import rung

        rung(loop)  # before torch is imported: a typing error is answered at once
        numbers = {"--lr": lr, "--loss-weight": loss_weight, "--init-scale": init_scale, "--max-norm": max_norm}
        for option, value in numbers.items():
            if value is not None and not 0 < value < float("inf"):
                raise LoopError(f"{option} must be a finite number greater than 0, and is {value:g}.")
        writable({"--log": log, "--checkpoint": checkpoint})

        from ampkit.loops.run import run

        run(
            loop,
            model=model,
            data_name=data,
            data_dir=data_dir,
            input=input,
            device=device,
            steps=steps,
            batch_size=batch_size,
            accumulate=accumulate,
            seed=seed,
            lr=lr,
            loss_weight=loss_weight,
            init_scale=init_scale,
            max_norm=max_norm,
            precision=precision,
            backend=backend,
            checkpoint=checkpoint,
            save_every=save_every,
            log=log,
        )


@app.command()
def bench(
    suite: Annotated[str | None, typer.Option(help="quick (a CPU, a minute) or headline (a CUDA GPU)")] = None,
    model: Annotated[str | None, typer.Option(help="one model instead of a suite", metavar="MODEL")] = None,
    input: Annotated[str | None, typer.Option(help="for a model of your own: f32[32,3,32,32]", metavar="SPEC")] = None,
    batch_size: Annotated[int, typer.Option(min=1, help="with --model or --overhead: samples a step")] = 32,
    device: Annotated[str | None, typer.Option(help="with --model or --overhead: cuda or cpu")] = None,
    compiled: Annotated[bool, typer.Option("--compiled", help="with --model: torch.compile as well")] = False,
    overhead: Annotated[bool, typer.Option("--overhead", help="our loop against others' instead")] = False,
    json: Annotated[Path | None, typer.Option(help="write the result, with its stamp", metavar="FILE")] = None,
    plot: Annotated[Path | None, typer.Option(help="draw the result", metavar="FILE.png")] = None,
) -> None:
    """Measure what mixed precision buys: speed, memory and what was learnt, in FP32, TF32 and AMP."""
    with _errors_as_messages():
        from ampkit.bench.command import run

        run(suite, model, input, batch_size, device, compiled, overhead, json, plot)


@app.command()
def ops(
    model: Annotated[
        str | None, typer.Argument(help="a name, package.module:callable or file.py:callable", metavar="MODEL")
    ] = None,
    dtype: Annotated[str, typer.Option(help="what autocast computes in: fp16 or bf16")] = "fp16",
    device: Annotated[
        str, typer.Option(help="whose autocast: cuda, cpu or both; with --lists mps and xpu too")
    ] = "cuda",
    input: Annotated[str | None, typer.Option(help="for a model of your own: f32[8,3,224,224]", metavar="SPEC")] = None,
    batch_size: Annotated[int, typer.Option(min=1, help="examples, for a registered model")] = 8,
    by: Annotated[str, typer.Option(help="a line for each module, or for each op")] = "module",
    real: Annotated[bool, typer.Option("--real", help="run it on the device; otherwise nothing is computed")] = False,
    lists: Annotated[bool, typer.Option("--lists", help="show which ops autocast casts, and how")] = False,
    json: Annotated[Path | None, typer.Option(help="write everything that was found", metavar="FILE.json")] = None,
) -> None:
    """Show the dtype that each module or op of a model computes in under autocast. No GPU is needed."""
    with _errors_as_messages():
        if (model is None) is not lists:
            raise typer.BadParameter("Name a MODEL, or ask for --lists: one of the two.")
        from ampkit.ops import command

        if model is None:
            command.print_lists(device)
        elif not command.run(
            model, dtype=dtype, device=device, input=input, batch_size=batch_size, by=by, real=real, json_file=json
        ):
            raise typer.Exit(1)


@app.command()
def plan(
    model: Annotated[str, typer.Argument(help="a name, package.module:callable or file.py:callable", metavar="MODEL")],
    vram: Annotated[
        str | None, typer.Option(help="of the card, as in 8GiB", show_default="the GPU's", metavar="SIZE")
    ] = None,
    batch_size: Annotated[int, typer.Option(min=1, help="examples from one step of the optimizer to the next")] = 32,
    precision: Annotated[str, typer.Option(help="fp32, fp16-mixed, bf16-mixed, bf16-true, …")] = "fp32",
    optimizer: Annotated[str, typer.Option(help="sgd, momentum, adamw, adamw-fused or adamw8bit")] = "adamw",
    accumulate: Annotated[int, typer.Option(min=1, help="micro-batches that the batch is split into")] = 1,
    checkpointing: Annotated[
        bool, typer.Option("--checkpointing", help="compute each block again in backward")
    ] = False,
    master_weights: Annotated[bool, typer.Option("--master-weights", help="FP32 copies of a …-true model")] = False,
    input: Annotated[
        str | None,
        typer.Option(help="for a model of your own: f32[8,3,224,224]; 8 stands for any batch", metavar="SPEC"),
    ] = None,
    loss: Annotated[str | None, typer.Option(help="cross_entropy, pixels, mse, bce or mean")] = None,
    measure: Annotated[bool, typer.Option("--measure", help="on a GPU: the allocator's numbers beside these")] = False,
    json: Annotated[Path | None, typer.Option(help="write the plan", metavar="FILE")] = None,
) -> None:
    """Predict the GPU memory of a training step without a GPU: what fits, and what to change first."""
    with _errors_as_messages():
        from ampkit.ledger.command import run

        recipe = {
            "batch_size": batch_size,
            "precision": precision,
            "optimizer": optimizer,
            "accumulate": accumulate,
            "checkpointing": checkpointing,
            "master_weights": master_weights,
        }
        run(model, vram=vram, recipe=recipe, inputs=input, loss=loss, measure=measure, json_file=json)


@app.command()
def doctor(
    context: typer.Context,
    what: Annotated[
        str | None,
        typer.Argument(
            help="a log FILE.jsonl, or a model: a name, package.module:callable, file.py:callable; "
            "this machine, if nothing is named",
            metavar="[LOG|MODEL]",
        ),
    ] = None,
    input: Annotated[str | None, typer.Option(help="model: what it takes, as f32[8,3,224,224]", metavar="SPEC")] = None,
    batch_size: Annotated[int, typer.Option(min=1, help="model: examples, for a registered one")] = 8,
    precision: Annotated[str, typer.Option(help="model: fp16-mixed, bf16-mixed, fp16-true, …")] = "fp16-mixed",
    device: Annotated[str | None, typer.Option(help="model: cuda or cpu", show_default="cuda if there is one")] = None,
    scale: Annotated[
        float | None, typer.Option(help="model: of the loss; 1 is no scaler", show_default="65536")
    ] = None,
    weights: Annotated[Path | None, typer.Option(help="model: load these weights", metavar="FILE.pt")] = None,
    evaluate: Annotated[bool, typer.Option("--eval", help="model: in evaluation mode, not in training mode")] = False,
    growth_interval: Annotated[int, typer.Option(min=1, help="log: of its GradScaler")] = 2000,
    max_norm: Annotated[float | None, typer.Option(help="log: what its gradients were clipped to")] = None,
    json: Annotated[Path | None, typer.Option(help="write what was found", metavar="FILE.json")] = None,
) -> None:
    """Find what is wrong: with this machine, with a training run by its log, or with a model's numbers.

    Exit status: 0 healthy, 3 something was found, 1 an error, 2 mistyped.
    """
    with _errors_as_messages():
        from ampkit.doctor.command import misplaced, run

        sources = {name: context.get_parameter_source(name) for name in context.params}
        given = [name for name, source in sources.items() if source is not None and source.name == "COMMANDLINE"]
        if (complaint := misplaced(what, given)) is not None:
            raise typer.BadParameter(complaint)
        status = run(
            what,
            input=input,
            batch_size=batch_size,
            precision=precision,
            device=device,
            scale=scale,
            weights=weights,
            evaluate=evaluate,
            growth_interval=growth_interval,
            max_norm=max_norm,
            json_file=json,
        )
        raise typer.Exit(status)


@app.command()
def lab(
    dir: Annotated[
        Path | None, typer.Option(help="your working copy", show_default="~/amp-course, or AMPKIT_COURSE_DIR")
    ] = None,
    port: Annotated[int, typer.Option(min=1, max=65535, help="port of JupyterLab on this machine")] = 8888,
    browser: Annotated[bool, typer.Option("--browser/--no-browser", help="open a browser")] = True,
    prepare_only: Annotated[bool, typer.Option("--prepare-only", help="update the copy and stop")] = False,
) -> None:
    """Open the course in JupyterLab, on a working copy of your own that no update ever overwrites."""
    with _errors_as_messages():
        from ampkit.lab import run

        raise typer.Exit(run(dir, port=port, browser=browser, prepare_only=prepare_only))
