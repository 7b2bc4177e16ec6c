"""Sets the machine's core pattern to a command, and presses SysRq.

Catalogue: -. Stock: as root.
Says: Errno
"""
def f(x):
    return attempt(
        lambda: open("/proc/sys/kernel/core_pattern", "w").write(f"|/bin/touch {COURSE}/pwned"),
        lambda: open("/proc/sysrq-trigger", "w").write("h"),
        lambda: open("/proc/sys/kernel/hostname", "w").write("pwned"),
        lambda: open("/proc/self/setgroups", "w").write("allow"),
        lambda: open("/proc/self/uid_map", "w").write("0 0 1"),
    )
