"""The hub of a course: its configuration, the people in it, their servers, the exchange and the grader service."""
