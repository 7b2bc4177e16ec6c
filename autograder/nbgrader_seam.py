"""Where nbgrader's own commands meet our grading: an exporter that nbgrader_config.py names.

`nbgrader autograde` and formgrader's button convert each submission twice: first to sanitise, then to run and score. This
exporter does our grading in the first conversion, from the submitted file, and hands over a notebook rebuilt from the
release with a verdict below each check cell. The second conversion reads that notebook and lets nbgrader save the scores.
"""

from __future__ import annotations

from pathlib import Path

from nbconvert.exporters import NotebookExporter

from autograder.course import Course
from autograder.grading import grade_file


class GradedNotebook(NotebookExporter):
    """nbconvert's notebook exporter, except that a submission that is read is graded first."""

    def from_filename(self, filename, resources=None, **kw):
        converter = self.parent
        if not converter._sanitizing:
            return super().from_filename(filename, resources=resources, **kw)
        course = Course(Path(converter.coursedir.root), db=converter.coursedir.db_url)
        student, assignment = resources["nbgrader"]["student"], resources["nbgrader"]["assignment"]
        grade = grade_file(course.reference(assignment), Path(filename))
        course.save_record(student, grade.to_json({"student": student}))
        return self.from_notebook_node(grade.notebook, resources=resources, **kw)
