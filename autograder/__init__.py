"""From submissions to grades: probes, evidence, verdicts, feedback."""
