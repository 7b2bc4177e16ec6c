"""The predictions are in a list, and nothing says which belongs to which operation. Keep the dict of the cell, with
its twelve keys as they are, and write a dtype behind each.
"""

PREDICTED = ["float16", "float32", "float32", "float32", "float16", "float16", "float16", "float32", "float32"]
