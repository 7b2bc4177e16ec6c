"""The three-way measurement done properly: FP32, TF32, AMP, AMP with the memory that it frees, each with a quality beside it.

result = run(SUITES["quick"])        what `ampkit bench` measures, as one JSON-able dict with its stamp
print(table(result))
plot(result).figure.savefig("bench.png")
"""

from ampkit.bench.measure import run, table
from ampkit.bench.overhead import overhead
from ampkit.bench.picture import plot
from ampkit.bench.stamp import stamp
from ampkit.bench.suites import SUITES, Setting, Suite, Workload, own_suite, suite

__all__ = ["SUITES", "Setting", "Suite", "Workload", "overhead", "own_suite", "plot", "run", "stamp", "suite", "table"]
