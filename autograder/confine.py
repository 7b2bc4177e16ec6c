"""What a process does to itself before it runs an answer. Each layer holds if the one before it does not.

    namespaces   Processes, mounts, network, IPC, host name and user ids of its own, made by bubblewrap (sandbox.py) and joined
                 here. Each run of an answer gets one more process namespace, of which it is process 1: it sees, and can
                 signal, nothing but what it started itself, and all of that ends with it. And one more of mounts, with a /tmp
                 and a /dev/shm that are small, empty and gone afterwards, of IPC, and of the network, where nothing is but
                 itself: what is left in the box's own when it has ended is what was there before.
    user         Uid 65534. Where the grader is root, an id that is not root's outside either: root's own is exempt from the
                 limit on processes, and would own every file of the system.
    capabilities None, the bounding set is empty, no_new_privs: a setuid program gives nothing.
    rlimits      Memory, CPU time, processes, open files and file size. They bind one process each, except that on processes;
                 for the sum over all of an exercise's processes who watches it looks into /proc (watch.py).
    Landlock     No file is written outside /tmp, /dev/shm and the null devices, whatever is mounted; no signal and no abstract
                 socket leaves the exercise. From Linux 5.13 on; each kernel enforces what it knows.
    seccomp      No system call that an answer has no business with and that has been a way out of sandboxes before: new
                 namespaces, mounts, tracing, keys, BPF, io_uring, userfaultfd, modules; memory that no process is charged for
                 (memfd, System V); sockets of families that a network namespace does not isolate, such as vsock, which
                 reaches the host of a virtual machine.

Everything but Landlock and seccomp is required, and an OSError where it cannot be had; of those two, what the kernel and this
processor's table of system calls allow. `autograder doctor` looks from inside.
"""

from __future__ import annotations

import ctypes
import errno
import fcntl
import os
import platform
import resource
import signal
import socket
import struct
from dataclasses import dataclass

from autograder.sandbox import NOBODY, prefixes
from autograder.watch import MEMORY_BYTES, PROCESSES

ADDRESS_BYTES = 16 << 30  # address space, of which a CUDA build of torch reserves much and uses little
FILE_BYTES = 64 << 20
TMP_BYTES = 256 << 20
SHM_BYTES = 64 << 20
TMP_FILES = 20_000
DESCRIPTORS = 256
CPU_SECONDS = 600  # of one process; the runner's clock ends an answer long before

NAMESPACES = ("mnt", "pid", "net", "ipc", "uts")
CLONE_NEWNS, CLONE_NEWIPC, CLONE_NEWPID, CLONE_NEWNET = 0x0002_0000, 0x0800_0000, 0x2000_0000, 0x4000_0000
SIOCSIFFLAGS, IFF_UP = 0x8914, 1
NS_GET_PARENT = 0xB702
MS_NOSUID, MS_NODEV, MS_NOEXEC, MS_BIND, MS_REC, MS_PRIVATE = 2, 4, 8, 0x1000, 0x4000, 0x4_0000
PR_SET_PDEATHSIG, PR_SET_DUMPABLE, PR_SET_SECCOMP, PR_CAPBSET_DROP, PR_SET_NO_NEW_PRIVS = 1, 4, 22, 24, 38
CAPABILITY_VERSION_3 = 0x20080522
libc = ctypes.CDLL(None, use_errno=True)


@dataclass
class Cage:
    """The box that this process has entered: where each exercise is shut in by itself.

    `user` is the user namespace that an exercise ends up in; None where it takes another uid in the one it is in.
    """

    user: int | None
    pids: int

    @classmethod
    def enter(cls, pid: int) -> Cage:
        """Join the namespaces of process `pid`, which bubblewrap made, and fork, because a process namespace takes in who
        is born in it. Returns in the child, which keeps its capabilities over the box; the parent waits for it and exits.
        """
        inner = os.open(f"/proc/{pid}/ns/user", os.O_RDONLY)
        others = [os.open(f"/proc/{pid}/ns/{name}", os.O_RDONLY) for name in NAMESPACES]
        mine = os.stat("/proc/self/ns/user").st_ino
        chain = [inner]
        # Mapping another uid takes bubblewrap a second user namespace inside the first; the mounts belong to the first.
        while os.fstat(parent := fcntl.ioctl(chain[0], NS_GET_PARENT)).st_ino != mine:
            chain.insert(0, parent)
        for namespace in (chain[0], *others):
            _check("setns", libc.setns(namespace, 0))
        for descriptor in (*chain[:-1], *others, parent, *([inner] if len(chain) == 1 else [])):
            os.close(descriptor)
        child = os.fork()
        if child:
            # It stays outside, where nothing inside can see it, and holds nothing.
            os.closerange(3, 1 << 16)
            os.waitpid(child, 0)
            os._exit(0)
        os.chdir("/tmp")
        return cls(inner if len(chain) > 1 else None, os.open("/proc/self/ns/pid", os.O_RDONLY))

    def fork(self) -> int:
        """As os.fork, with the child as process 1 of a new process namespace, whose end is the end of all in it."""
        _check("unshare", libc.unshare(CLONE_NEWPID))
        child = os.fork()
        if child:
            _check("setns", libc.setns(self.pids, CLONE_NEWPID))
        return child

    def shut(self) -> None:
        """Shut the calling process in, for good. It must have one thread, and keeps no capability."""
        os.setsid()
        untraceable(False)  # what forked it is, and its files in /proc are root's for that
        _check("unshare", libc.unshare(CLONE_NEWNS | CLONE_NEWIPC | CLONE_NEWNET))
        _own_mounts()
        _loopback()
        # Where the machine itself runs out of memory, an answer goes first.
        with open("/proc/self/oom_score_adj", "w") as file:
            file.write("1000")
        inherited = _inherited_bytes()
        if self.user is not None:
            _check("setns", libc.setns(self.user, 0))
        # Before the uid changes: that takes the capability that this needs.
        _empty_bounding_set()
        if os.getuid() != NOBODY:
            os.setgroups([])
            os.setresgid(NOBODY, NOBODY, NOBODY)
            os.setresuid(NOBODY, NOBODY, NOBODY)
        untraceable(False)  # another uid made it so again; who watches it has to see its memory
        _limit(inherited)
        _drop_capabilities()
        _landlock()
        _seccomp()


def untraceable(yes: bool = True) -> None:
    """Let no process without capabilities trace this one, read its memory or its descriptors."""
    _check("prctl", libc.prctl(PR_SET_DUMPABLE, int(not yes), 0, 0, 0))


def end_with_parent() -> None:
    """Have the kernel kill this process when the thread that forked it is gone."""
    _check("prctl", libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0))


def _check(name: str, result: int) -> int:
    if result < 0:
        code = ctypes.get_errno()
        raise OSError(code, f"{name}: {os.strerror(code)}")
    return result


def _loopback() -> None:
    """Bring up 127.0.0.1, over which the ranks of a process group meet: in a new network it is down."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        fcntl.ioctl(any_socket, SIOCSIFFLAGS, struct.pack("16sh22x", b"lo", IFF_UP))


def _own_mounts() -> None:
    _mount(None, "/", None, MS_REC | MS_PRIVATE)
    _mount("proc", "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC)
    # A Python that is installed somewhere in /tmp has to stay there.
    kept = {path: os.open(path, os.O_PATH) for path in prefixes() if path.startswith("/tmp/")}
    for path, size, files in (("/tmp", TMP_BYTES, TMP_FILES), ("/dev/shm", SHM_BYTES, 1_000)):
        _mount("tmpfs", path, "tmpfs", MS_NOSUID | MS_NODEV, f"size={size},nr_inodes={files},mode=1777")
    for path, descriptor in kept.items():
        os.makedirs(path)
        _mount(f"/proc/self/fd/{descriptor}", path, None, MS_BIND | MS_REC)
        os.close(descriptor)
    os.chdir("/tmp")


def _mount(source: str | None, target: str, kind: str | None, flags: int, options: str | None = None) -> None:
    texts = [text and text.encode() for text in (source, target, kind)]
    _check(f"mount {target}", libc.mount(*texts, ctypes.c_ulong(flags), options and options.encode()))


def _inherited_bytes() -> int:
    with open("/proc/self/statm", "rb") as file:
        return int(file.read().split()[5]) * resource.getpagesize()


def _limit(inherited: int) -> None:
    for name, value in (
        (resource.RLIMIT_AS, ADDRESS_BYTES),
        (resource.RLIMIT_DATA, inherited + MEMORY_BYTES),
        (resource.RLIMIT_CPU, CPU_SECONDS),
        (resource.RLIMIT_FSIZE, FILE_BYTES),
        (resource.RLIMIT_NPROC, PROCESSES),
        (resource.RLIMIT_NOFILE, DESCRIPTORS),
        (resource.RLIMIT_MEMLOCK, 0),
        (resource.RLIMIT_MSGQUEUE, 0),
        (resource.RLIMIT_CORE, 0),
    ):
        _, hard = resource.getrlimit(name)
        value = value if hard == resource.RLIM_INFINITY else min(value, hard)
        resource.setrlimit(name, (value, value))


def _empty_bounding_set() -> None:
    capability = 0
    while libc.prctl(PR_CAPBSET_DROP, capability, 0, 0, 0) == 0:
        capability += 1
    if ctypes.get_errno() != errno.EINVAL:  # what it says of a number that is no capability
        _check("capability", -1)


def _drop_capabilities() -> None:
    _check("no_new_privs", libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
    header = (ctypes.c_uint32 * 2)(CAPABILITY_VERSION_3, 0)
    _check("capset", libc.capset(header, (ctypes.c_uint32 * 6)()))


# Landlock, from linux/landlock.h. The rights that each version of it added, and how it numbers its system calls, which are
# the same on every processor.
LANDLOCK_CREATE, LANDLOCK_ADD, LANDLOCK_RESTRICT = 444, 445, 446
READ = 1 << 0 | 1 << 2 | 1 << 3  # execute, read a file, read a directory
WRITE_FILE, TRUNCATE, IOCTL_DEV = 1 << 1, 1 << 14, 1 << 15
MAKE_DEVICES = 1 << 6 | 1 << 11
RIGHTS = {1: (1 << 13) - 1, 2: 1 << 13, 3: TRUNCATE, 5: IOCTL_DEV}
SCOPE_ABSTRACT_SOCKET, SCOPE_SIGNAL = 1, 2
DEVICES = ("/dev/null", "/dev/zero", "/dev/full", "/dev/tty", "/dev/ptmx", "/dev/pts")


def _landlock() -> None:
    version = libc.syscall(LANDLOCK_CREATE, None, 0, 1)
    if version < 1:  # the kernel has none, or it is switched off
        return
    handled = sum(rights for since, rights in RIGHTS.items() if since <= version)
    scoped = SCOPE_ABSTRACT_SOCKET | SCOPE_SIGNAL if version >= 6 else 0
    attributes = struct.pack("=QQQ", handled, 0, scoped)[: 24 if version >= 6 else 8]
    ruleset = _check("landlock", libc.syscall(LANDLOCK_CREATE, attributes, ctypes.c_size_t(len(attributes)), 0))
    everything = handled & ~MAKE_DEVICES
    allowed = {"/": READ, "/tmp": everything, "/dev/shm": everything}
    allowed |= {device: READ | WRITE_FILE | TRUNCATE | IOCTL_DEV for device in DEVICES}
    for path, rights in allowed.items():
        try:
            beneath = os.open(path, os.O_PATH | os.O_CLOEXEC)
        except FileNotFoundError:
            continue
        if not os.path.isdir(path):
            rights &= ~(1 << 3)
        rule = struct.pack("=Qi", rights & handled, beneath)
        _check(f"landlock {path}", libc.syscall(LANDLOCK_ADD, ruleset, 1, rule, 0))
        os.close(beneath)
    _check("landlock", libc.syscall(LANDLOCK_RESTRICT, ruleset, 0))
    os.close(ruleset)


# Seccomp, from linux/seccomp.h, linux/filter.h and each processor's table: name: (x86_64, aarch64), None where it has none.
AUDIT_ARCH = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
DENIED = {
    # namespaces, mounts, other roots
    "unshare": (272, 97), "setns": (308, 268), "mount": (165, 40), "umount2": (166, 39), "pivot_root": (155, 41),
    "chroot": (161, 51), "open_tree": (428, 428), "move_mount": (429, 429), "fsopen": (430, 430),
    "fsconfig": (431, 431), "fsmount": (432, 432), "fspick": (433, 433), "mount_setattr": (442, 442),
    "open_tree_attr": (467, 467), "name_to_handle_at": (303, 264), "open_by_handle_at": (304, 265),
    # other processes' memory and descriptors
    "ptrace": (101, 117), "process_vm_readv": (310, 270), "process_vm_writev": (311, 271), "kcmp": (312, 272),
    "pidfd_getfd": (438, 438), "process_madvise": (440, 440), "move_pages": (279, 239), "migrate_pages": (256, 238),
    # parts of the kernel with a long list of holes
    "bpf": (321, 280), "perf_event_open": (298, 241), "userfaultfd": (323, 282), "io_uring_setup": (425, 425),
    "io_uring_enter": (426, 426), "io_uring_register": (427, 427), "add_key": (248, 217), "request_key": (249, 218),
    "keyctl": (250, 219), "fanotify_init": (300, 262), "modify_ldt": (154, None), "personality": (135, 92),
    # memory that no process is charged for
    "memfd_create": (319, 279), "memfd_secret": (447, 447), "shmget": (29, 194), "shmat": (30, 196),
    "msgget": (68, 186), "semget": (64, 190), "mq_open": (240, 180),
    # the machine
    "init_module": (175, 105), "finit_module": (313, 273), "delete_module": (176, 106), "kexec_load": (246, 104),
    "kexec_file_load": (320, 294), "reboot": (169, 142), "swapon": (167, 224), "swapoff": (168, 225),
    "acct": (163, 89), "syslog": (103, 116), "quotactl": (179, 60), "quotactl_fd": (443, 443),
    "settimeofday": (164, 170), "clock_settime": (227, 112), "adjtimex": (159, 171), "clock_adjtime": (305, 266),
    "sethostname": (170, 161), "setdomainname": (171, 162), "iopl": (172, None), "ioperm": (173, None),
    "vhangup": (153, 58), "lookup_dcookie": (212, 18),
}  # fmt: skip
CLONE, CLONE3, SOCKET, SOCKETPAIR = (56, 220), (435, 435), (41, 198), (53, 199)
NEW_NAMESPACES = 0x7E02_0000  # CLONE_NEW*: ns, cgroup, uts, ipc, user, pid, net
FAMILIES = (1, 2, 10)  # unix, inet, inet6: the ones that a network namespace holds
X32 = 0x4000_0000
ALLOW, KILL_PROCESS, ERRNO = 0x7FFF_0000, 0x8000_0000, 0x0005_0000
LOAD, JUMP_EQUAL, JUMP_AT_LEAST, JUMP_ANY_BIT, RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
NUMBER_AT, ARCHITECTURE_AT, FIRST_ARGUMENT_AT = 0, 4, 16  # in struct seccomp_data; the low word on these two


def seccomp_filter(machine: str) -> bytes | None:
    """The filter as BPF instructions (struct sock_filter, 8 bytes each); None for a processor whose table is not here.

    >>> len(seccomp_filter("x86_64")) % 8, seccomp_filter("s390x")
    (0, None)
    """
    if machine not in AUDIT_ARCH:
        return None
    here = list(AUDIT_ARCH).index(machine)
    # A filter is walked from its top for every system call, so jumps are short: "is it this one? else skip one line".
    steps: list[tuple[int, int, int, int]] = [
        (LOAD, 0, 0, ARCHITECTURE_AT),
        (JUMP_EQUAL, 1, 0, AUDIT_ARCH[machine]),
        (RETURN, 0, 0, KILL_PROCESS),
        (LOAD, 0, 0, NUMBER_AT),
        (JUMP_AT_LEAST, 0, 1, X32),
        (RETURN, 0, 0, ERRNO | errno.ENOSYS),
        # The flags of clone3 are in memory, where no filter can look: without it the C library takes clone.
        (JUMP_EQUAL, 0, 1, CLONE3[here]),
        (RETURN, 0, 0, ERRNO | errno.ENOSYS),
    ]
    for numbers in DENIED.values():
        if numbers[here] is not None:
            steps += [(JUMP_EQUAL, 0, 1, numbers[here]), (RETURN, 0, 0, ERRNO | errno.EPERM)]
    steps += [
        (JUMP_EQUAL, 0, 4, CLONE[here]),
        (LOAD, 0, 0, FIRST_ARGUMENT_AT),
        (JUMP_ANY_BIT, 0, 1, NEW_NAMESPACES),
        (RETURN, 0, 0, ERRNO | errno.EPERM),
        (RETURN, 0, 0, ALLOW),
        (JUMP_EQUAL, 1, 0, SOCKET[here]),
        (JUMP_EQUAL, 0, len(FAMILIES) + 2, SOCKETPAIR[here]),
        (LOAD, 0, 0, FIRST_ARGUMENT_AT),
    ]
    steps += [(JUMP_EQUAL, len(FAMILIES) - i, 0, family) for i, family in enumerate(FAMILIES)]
    steps += [(RETURN, 0, 0, ERRNO | errno.EAFNOSUPPORT), (RETURN, 0, 0, ALLOW)]
    return b"".join(struct.pack("=HBBI", *step) for step in steps)


def _seccomp() -> None:
    code = seccomp_filter(platform.machine())
    if code is None:
        return
    program = struct.pack("@HP", len(code) // 8, ctypes.addressof(buffer := ctypes.create_string_buffer(code)))
    result = libc.prctl(PR_SET_SECCOMP, 2, program, 0, 0)
    del buffer
    if result and ctypes.get_errno() != errno.EINVAL:  # EINVAL: a kernel without it
        _check("seccomp", result)
