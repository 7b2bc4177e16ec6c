"""What `ampkit doctor` does: choose the instrument by what it is given, print the diagnosis, write it as JSON."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from ampkit.doctor.findings import Diagnosis
from ampkit.errors import DoctorError, ModelError
from ampkit.output import writable, write_json

__all__ = ["FOUND", "kind", "misplaced", "run"]

FOUND = 3  # exit status where there are findings; 0: healthy, 1: an error, 2: mistyped
_HELD_AS = ("model", "state_dict", "model_state_dict")  # where checkpoints keep a model's weights


def kind(subject: str | None) -> str:
    """ "machine" for nothing, "log" for a file of records, "model" for a registered name or an import path."""
    if subject is None:
        return "machine"
    path = Path(subject)
    return "log" if path.suffix in (".jsonl", ".json", ".log") or (path.is_file() and ":" not in subject) else "model"


def misplaced(subject: str | None, given: Iterable[str]) -> str | None:
    """A sentence on the first option that says nothing about this subject; None if all belong to it."""
    for_log, for_all = {"growth_interval", "max_norm"}, {"what", "json"}
    what = kind(subject)
    for name in given:
        of = "log" if name in for_log else "model"
        if name not in for_all and of != what:
            option = "--eval" if name == "evaluate" else "--" + name.replace("_", "-")
            here = {"machine": "this machine", "log": f"the log {subject}", "model": f"the model {subject}"}[what]
            return f"{option} is for a {of}, and {here} is to be examined. Leave it out, or name the {of}."
    return None


def run(
    subject: str | None,
    *,
    input: str | None = None,
    batch_size: int = 8,
    precision: str = "fp16-mixed",
    device: str | None = None,
    scale: float | None = None,
    weights: Path | None = None,
    evaluate: bool = False,
    growth_interval: int = 2000,
    max_norm: float | None = None,
    json_file: Path | None = None,
) -> int:
    """Diagnose the machine (no subject), a log or a model; returns the exit status. Raises what the instruments raise."""
    writable({"--json": json_file})
    if subject is None:
        from ampkit.doctor.machine import environment

        diagnosis: Diagnosis = environment()
    elif kind(subject) == "log":
        from ampkit.doctor.logs import diagnose_log

        diagnosis = diagnose_log(subject, growth_interval=growth_interval, max_norm=max_norm)
    else:
        diagnosis = _examined(subject, input, batch_size, precision, device, scale, weights, evaluate)
    print(diagnosis.text())
    if json_file is not None:
        write_json(diagnosis.to_dict(), json_file)
    return 0 if diagnosis.healthy else FOUND


def _examined(spec, input, batch_size, precision, device, scale, weights, evaluate) -> Diagnosis:
    import torch

    from ampkit import models
    from ampkit.doctor.numbers import examine

    torch.manual_seed(0)
    model = models.build(spec)
    if weights is not None:
        _load(model, weights)
    model.train(not evaluate)
    if input is not None:
        arguments, targets, loss_fn = models.parse_input(input), None, None
    elif spec in models.MODELS:
        arguments, targets = models.example(spec, batch_size)
        loss = models.loss(spec)
        loss_fn = lambda output, targets: loss(output.float(), targets)  # noqa: E731 (as the loops of ampkit compute it)
    else:
        raise ModelError(f"What {spec} takes is not known. Describe it with --input, as in --input 'f32[8,3,224,224]'.")
    return examine(
        model, tuple(arguments), targets, loss_fn, precision=precision, device=device, scale=scale, name=spec
    )


def _load(model, path: Path) -> None:
    import torch

    try:
        saved: Any = torch.load(path, map_location="cpu", weights_only=True)
    except OSError as error:
        raise DoctorError(f"The weights {path} cannot be read: {error.strerror}. Name a file of torch.save.") from error
    except Exception as error:  # pickle, zip and torch have each their own
        raise DoctorError(
            f"{path} is no checkpoint of tensors that torch.load(weights_only=True) reads: {str(error).splitlines()[0][:160]} "
            "Save model.state_dict()."
        ) from error
    for name in _HELD_AS:
        if isinstance(saved, dict) and isinstance(saved.get(name), dict):
            saved = saved[name]
            break
    if not isinstance(saved, dict):
        raise DoctorError(f"{path} holds {type(saved).__name__} and no state_dict. Save model.state_dict().")
    wrapped = ("module.", "_orig_mod.")  # DistributedDataParallel's and torch.compile's
    state = {}
    for key, value in saved.items():
        while key.startswith(wrapped):
            key = key.partition(".")[2]
        state[key] = value
    try:
        model.load_state_dict(state)
    except Exception as error:
        first = " ".join(str(error).split())[:300]
        raise DoctorError(f"The weights of {path} are not of this model. {first}") from error
