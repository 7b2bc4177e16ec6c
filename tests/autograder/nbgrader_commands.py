"""nbgrader's own commands, one after the other in one process: starting nbgrader takes longer than most of them.

    python nbgrader_commands.py COMMANDS.json

Each command is {"cwd": folder, "run": [arguments of `nbgrader`]}, or {"cwd": folder, "api": [method, arguments …]} for a
method of NbGraderAPI, as formgrader calls it. The last line of the output is a JSON list with what each gave back: its exit
status, or the result.
"""

import json
import os
import sys
import warnings

from jupyter_core.application import NoStart
from nbgrader.apps import NbGraderAPI, NbGraderApp
from nbgrader.coursedir import CourseDirectory
from traitlets.config import PyFileConfigLoader


def run(arguments: list[str]) -> int:
    app = NbGraderApp()
    try:
        app.initialize(arguments)
        app.start()
    except SystemExit as end:
        return end.code or 0
    except NoStart:  # the end of a subcommand that went well
        return 0
    finally:
        if app.subapp is not None:
            type(app.subapp).clear_instance()
        NbGraderApp.clear_instance()
    return 0


def api(method: str, *arguments: str) -> object:
    config = PyFileConfigLoader("nbgrader_config.py", path=".").load_config()
    result = getattr(NbGraderAPI(CourseDirectory(config=config), config=config), method)(*arguments)
    return sorted(result) if isinstance(result, set) else result


def main() -> None:
    warnings.simplefilter("ignore")
    with open(sys.argv[1], encoding="utf-8") as file:
        commands = json.load(file)
    results = []
    for command in commands:
        os.chdir(command["cwd"])
        results.append(run(command["run"]) if "run" in command else api(*command["api"]))
    print()
    print(json.dumps(results, default=str))


if __name__ == "__main__":
    main()
