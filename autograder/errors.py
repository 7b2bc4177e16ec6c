"""The errors that autograder raises on purpose.

    AutograderError            the root; the command line prints it without a traceback and exits with status 1
    ├── RoomError              an assignment's own files are wrong: notebook, checks, mistakes, other right answers
    ├── EvidenceError          what came out of a box is not evidence: malformed, too large, of a forbidden type
    ├── SandboxError           this machine cannot isolate an answer
    ├── WorkerError            a machine that was to run an answer cannot, or was lost; no submission is to blame
    ├── CourseError            a course folder, its configuration or its gradebook is not as needed
    ├── HubError               a hub's configuration or roster is wrong, or the hub cannot be started here
    └── SubmissionError        a submission cannot be read; carries the status that the student gets

Each message says what happened, what it means and what to do.
"""


class AutograderError(Exception):
    pass


class RoomError(AutograderError):
    pass


class EvidenceError(AutograderError):
    pass


class SandboxError(AutograderError):
    pass


class WorkerError(AutograderError):
    pass


class CourseError(AutograderError):
    pass


class HubError(AutograderError):
    pass


class SubmissionError(AutograderError):
    pass
