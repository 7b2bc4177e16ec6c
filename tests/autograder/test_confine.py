"""The filter of system calls: what it says of each, and that its numbers are the kernel's."""

import errno
import re
import struct
import sys
from pathlib import Path

import pytest

if not sys.platform.startswith("linux"):
    pytest.skip("requires Linux: what is confined here is Linux's", allow_module_level=True)

from autograder.confine import (
    ALLOW,
    AUDIT_ARCH,
    CLONE,
    CLONE3,
    DENIED,
    ERRNO,
    KILL_PROCESS,
    NEW_NAMESPACES,
    SOCKET,
    SOCKETPAIR,
    X32,
    seccomp_filter,
)

MACHINES = list(AUDIT_ARCH)


def verdict(machine: str, number: int, argument: int = 0, architecture: int | None = None) -> int:
    """What the filter says of a system call: BPF, as far as the filter uses it."""
    code = seccomp_filter(machine)
    steps = list(struct.iter_unpack("=HBBI", code))
    data = {0: number, 4: AUDIT_ARCH[machine] if architecture is None else architecture, 16: argument}
    value, at = 0, 0
    while True:
        operation, if_true, if_false, operand = steps[at]
        at += 1
        if operation == 0x20:
            value = data[operand]
        elif operation == 0x06:
            return operand
        else:
            holds = {0x15: value == operand, 0x35: value >= operand, 0x45: bool(value & operand)}[operation]
            at += if_true if holds else if_false


@pytest.mark.parametrize("machine", MACHINES)
def test_what_is_denied_is_denied_and_nothing_else(machine):
    here = MACHINES.index(machine)
    denied = {numbers[here] for numbers in DENIED.values() if numbers[here] is not None}
    assert len(denied) > 50, "no number twice"
    special = {CLONE3[here], SOCKET[here], SOCKETPAIR[here]}
    for number in range(600):
        if number in special:
            continue
        assert verdict(machine, number) == (ERRNO | errno.EPERM if number in denied else ALLOW), number


@pytest.mark.parametrize("machine", MACHINES)
def test_threads_and_forks_are_allowed_and_new_namespaces_are_not(machine):
    here = MACHINES.index(machine)
    fork, thread = 17, 0x3D0F00
    assert verdict(machine, CLONE[here], fork) == verdict(machine, CLONE[here], thread) == ALLOW
    for bit in range(32):
        if NEW_NAMESPACES >> bit & 1:
            assert verdict(machine, CLONE[here], 1 << bit | fork) == ERRNO | errno.EPERM
    assert verdict(machine, CLONE3[here]) == ERRNO | errno.ENOSYS


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize(
    "family, allowed", [(1, True), (2, True), (10, True), (16, False), (17, False), (38, False), (40, False)]
)
def test_sockets_are_of_families_that_a_network_namespace_holds(machine, family, allowed):
    here = MACHINES.index(machine)
    for number in (SOCKET[here], SOCKETPAIR[here]):
        assert verdict(machine, number, family) == (ALLOW if allowed else ERRNO | errno.EAFNOSUPPORT)


def test_another_table_of_system_calls_is_the_end():
    assert verdict("x86_64", 101, architecture=0x40000003) == KILL_PROCESS
    assert verdict("x86_64", X32 | 101) == ERRNO | errno.ENOSYS


def test_a_processor_without_a_table_has_no_filter():
    assert seccomp_filter("s390x") is None


HEADERS = {
    "x86_64": Path("/usr/include/x86_64-linux-gnu/asm/unistd_64.h"),
    "aarch64": Path("/usr/include/asm-generic/unistd.h"),  # that processor has the generic table
}


@pytest.mark.parametrize("machine", MACHINES)
def test_the_numbers_are_the_kernels(machine):
    if not HEADERS[machine].is_file():
        pytest.skip(f"requires {HEADERS[machine]}: apt install linux-libc-dev")
    text = HEADERS[machine].read_text()
    real = {name: int(number) for name, number in re.findall(r"#define __NR(?:3264)?_(\w+)\s+(\d+)", text)}
    here = MACHINES.index(machine)
    ours = {name: numbers[here] for name, numbers in DENIED.items()}
    ours |= {"clone": CLONE[here], "clone3": CLONE3[here], "socket": SOCKET[here], "socketpair": SOCKETPAIR[here]}
    # A header may be older than the newest calls.
    known = {name: number for name, number in ours.items() if name in real}
    assert known == {name: real[name] for name in known} and len(known) > 50
    assert all(name not in real for name, number in ours.items() if number is None)
