"""The doctor: where the numbers break and why, what a log of steps says, what is wrong with this machine."""
