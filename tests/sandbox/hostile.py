"""Programs that try to get out of the sandbox, each a function of its own source.

Each is given the world of `escape.World` and returns a text about what it reached, or None; being refused or killed is
the other way to fail. Every one is bounded, so that a hole does no harm to the machine that finds it: processes and
files are counted, memory ends at 2 GB, signals go to a process made for them, and clocks and names are set to what they
are.
"""

from __future__ import annotations

import ctypes
import inspect
import os
import sys
import time
from collections.abc import Callable
from typing import Any

#: Sent before each program, with the functions `call` and `linger`.
_PRELUDE = """
import ctypes
import os
import sys
import time

libc = ctypes.CDLL(None, use_errno=True)
x86 = os.uname().machine == "x86_64"
"""
libc = ctypes.CDLL(None, use_errno=True)
x86 = os.uname().machine == "x86_64"


def call(x86_number, arm_number, *arguments):
    """A system call by its number on the two machines; raises when it is refused."""
    words = [ctypes.c_long(a) if isinstance(a, int) else a for a in arguments]
    done = libc.syscall(ctypes.c_long(x86_number if x86 else arm_number), *words)
    if done == -1:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return done


def linger():
    """What a process that should not be there does: nothing, for a while, under a name that gives it away."""
    for fd in range(3, 256):
        try:
            os.close(fd)
        except OSError:
            pass
    try:
        os.execv("/bin/sleep", ["sleep", "3.14159"])
    except OSError:
        time.sleep(3)
    os._exit(0)


# --- processes and time ---


def fork_bomb(world):
    children = 0
    for _ in range(64):
        pid = os.fork()
        if pid == 0:
            linger()
        children += 1
    return f"{children} processes"


def fork_from_a_thread(world):
    import threading

    got: list[int | OSError] = []

    def run():
        try:
            pid = os.fork()
        except OSError as error:
            got.append(error)
            return
        if pid == 0:
            linger()
        got.append(pid)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    if isinstance(got[0], OSError):
        raise got[0]
    return f"process {got[0]}"


def raw_clone(world):
    pid = call(56, 220, 17, 0, 0, 0, 0)
    if pid == 0:
        linger()
    return f"process {pid}"


def vfork(world):
    pid = call(56, 220, 0x4011, 0, 0, 0, 0)
    if pid == 0:
        os._exit(0)
    return f"process {pid}"


def clone3(world):
    arguments = (ctypes.c_ulong * 11)(0, 0, 0, 0, 17)
    pid = call(435, 435, arguments, ctypes.sizeof(arguments))
    if pid == 0:
        linger()
    return f"process {pid}"


def subprocess_(world):
    import subprocess

    return subprocess.run(["/bin/echo", "out"], capture_output=True, text=True, check=True).stdout


def posix_spawn(world):
    return f"process {os.posix_spawn('/bin/sleep', ['sleep', '3.14159'], {})}"


def execute(world):
    os.execv("/bin/sleep", ["sleep", "3.14159"])


def execute_from_memory(world):
    fd = call(319, 279, b"program", 0)
    with open("/bin/sleep", "rb") as program:
        os.write(fd, program.read())
    os.execve(fd, ["sleep", "3.14159"], {})


def preloaded_library(world):
    os.environ["LD_PRELOAD"] = f"{world['open_folder']}/evil.so"
    os.execve("/bin/sleep", ["sleep", "3.14159"], dict(os.environ))


def daemon(world):
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            linger()
        os._exit(0)
    return "a daemon"


def new_session(world):
    os.setsid()
    return "a session of its own"


def signal_proof_loop(world):
    import signal

    for number in range(1, 65):
        try:
            signal.signal(number, signal.SIG_IGN)
        except (OSError, ValueError):
            pass
    while True:
        try:
            while True:
                pass
        except BaseException:
            pass


def sleep_for_ever(world):
    while True:
        time.sleep(1000)


def regular_expression_bomb(world):
    import re

    return str(re.match(r"(a+)+$", "a" * 64 + "b"))


def huge_integer(world):
    return f"{(10**400_000_000) % 7} of a number of 166 MB"


def recursion(world):
    sys.setrecursionlimit(1 << 30)

    def down(n):
        return down(n + 1) + 1

    return f"{down(0)}"


def recursion_in_c(world):
    sys.setrecursionlimit(1 << 30)
    nest: list[object] = []
    for _ in range(100_000):
        nest = [nest]
    return f"{len(repr(nest))} deep"


def segmentation_fault(world):
    ctypes.string_at(0)


def abort(world):
    os.abort()


def leave(world):
    os._exit(0)


def exit_at_import(world):
    raise SystemExit(0)


def threads(world):
    import threading

    threading.stack_size(32768)
    count = 0
    try:
        while count < 3000:
            threading.Thread(target=time.sleep, args=(5,), daemon=True).start()
            count += 1
    except RuntimeError:
        pass
    return f"{count} threads" if count > 1000 else None


def thread_left_running(world):
    import threading

    def work():
        while True:
            try:
                os.write(1, b"still here")
            except OSError:
                pass

    threading.Thread(target=work).start()


def evaluated_loop(world):
    import pickle

    class Evil:
        def __reduce__(self):
            return eval, ("[x for x in iter(int, 1)]",)

    pickle.loads(pickle.dumps(Evil()))


def pickled_command(world):
    import pickle

    class Evil:
        def __reduce__(self):
            return os.system, ("sleep 3.14159 &",)

    if pickle.loads(pickle.dumps(Evil())) == 0:
        return "a command"


# --- memory ---


def memory(world):
    held = []
    for _ in range(128):
        held.append(bytearray(16 << 20))
        held[-1][::4096] = b"1" * 4096
        if len(held) > 40:
            return f"{len(held) * 16} MB"


def memory_of_eight_processes(world):
    for _ in range(8):
        if os.fork() == 0:
            block = bytearray(128 << 20)
            block[::4096] = b"1" * len(block[::4096])
            linger()
    return "8 x 128 MB"


def shared_memory(world):
    import mmap

    return f"{len(mmap.mmap(-1, 1 << 30))} bytes"


def memory_file(world):
    fd = call(319, 279, b"x", 0)
    for _ in range(64):
        os.write(fd, bytes(1 << 20))
    return "64 MB in no file"


def system_v_memory(world):
    part = call(29, 194, 0, 64 << 20, 0o1600)
    call(31, 195, part, 0, 0)
    return "64 MB that outlive the process"


def locked_memory(world):
    call(151, 230, 1)
    return "all memory locked"


def zip_bomb(world):
    import zlib

    packer = zlib.compressobj(9, wbits=-15)
    packed = packer.compress(bytes(1 << 20)) + packer.flush(zlib.Z_FULL_FLUSH)
    return f"{len(zlib.decompressobj(-15).decompress(packed * 2048))} bytes of {len(packed) * 2048}"


def objects_of_the_collector(world):
    import gc

    seen = [
        repr(thing) for thing in gc.get_objects() if isinstance(thing, (dict, list, tuple, str)) and len(thing) < 500
    ]
    if any(world["expected"][::-1] in text for text in seen):
        return "the expected answer"


# --- output ---


def output_flood(world):
    block = b"x" * (1 << 20)
    for fd in (1, 2):
        for _ in range(5 * 1024):
            os.write(fd, block)


def result_flood(world):
    return "x" * (64 << 20)


def many_results(world):
    return [[] for _ in range(500_000)]


def channel_flood(world):
    block = b"x" * (1 << 20)
    for _ in range(64):
        for fd in range(64):
            try:
                os.write(fd, block)
            except OSError:
                pass


def terminal(world):
    with open(world["terminal"], "w") as terminal:
        terminal.write("I was here")
    return "wrote to the terminal"


def typed_into_terminal(world):
    import fcntl

    fd = os.open(world["terminal"], os.O_RDONLY | os.O_NOCTTY)
    return f"{fcntl.ioctl(fd, 0x5413, bytes(8))!r} of the terminal"


def own_terminal(world):
    import fcntl

    fd = os.open("/dev/tty", os.O_RDWR)
    fcntl.ioctl(fd, 0x5412, b"x")
    return "typed"


def pushed_into_standard_input(world):
    import fcntl

    for fd in range(64):
        try:
            fcntl.ioctl(fd, 0x5412, b"x")
        except OSError as error:
            if error.errno not in (1, 9):
                return f"TIOCSTI reached the kernel: {error}"
    raise PermissionError


# --- files ---


def secret_file(world):
    with open(world["secret_file"]) as file:
        return file.read()


def secret_by_the_parents_root(world):
    with open(f"/proc/{world['parent']}/root{world['secret_file']}") as file:
        return file.read()


def secret_by_the_parents_descriptor(world):
    with open(f"/proc/{world['parent']}/fd/{world['descriptor']}") as file:
        return file.read()


def size_of_the_secret_file(world):
    return f"{os.stat(world['secret_file']).st_size} bytes are there"


def password_file(world):
    for path in ("/etc/passwd", "/etc/shadow", "/etc/hostname", "/etc/ssl/openssl.cnf", "/proc/version"):
        try:
            with open(path) as file:
                return file.read(50)
        except OSError:
            pass
    raise PermissionError


def files_of_others(world):
    for folder in ("/home", "/root", "/tmp", "/var", "/work", "/proc", "/sys", "/"):
        try:
            return f"{folder}: {os.listdir(folder)}"
        except OSError:
            pass
    raise PermissionError


def the_projects_sources(world):
    with open(world["source"]) as file:
        return file.read(100)


def environment(world):
    if os.environ:
        return str(dict(os.environ))
    environ = ctypes.POINTER(ctypes.c_char_p).in_dll(libc, "environ")
    i = 0
    while environ and environ[i]:
        if world["variable"].encode() in environ[i]:
            return repr(environ[i])
        i += 1


def environment_on_the_stack(world):
    with open("/proc/self/stat") as file:
        start, end = map(int, file.read().rsplit(")", 1)[1].split()[47:49])
    return f"{ctypes.string_at(start, end - start)!r}"


def environments_of_others(world):
    found = []
    for name in (*(n for n in os.listdir("/proc") if n.isdecimal()), str(world["parent"])):
        try:
            with open(f"/proc/{name}/environ", "rb") as file:
                found.append(file.read(50))
        except OSError:
            pass
    return str(found) if found else None


def memory_of_the_parent(world):
    with open(f"/proc/{world['parent']}/mem", "rb") as file:
        file.seek(0x400000)
        return f"{file.read(4)!r}"


def write_outside(world):
    with open(f"{world['open_folder']}/new", "w") as file:
        file.write("x")
    return "wrote"


def write_elsewhere(world):
    for folder in ("/tmp", "/dev/shm", "/var/tmp", ".", "/run", "/", os.path.dirname(os.__file__)):
        path = f"{folder}/adaptive-eval-escape"
        try:
            fd = os.open(path, os.O_CREAT | os.O_WRONLY)
        except OSError:
            continue
        os.close(fd)
        os.unlink(path)
        return f"wrote {path}"
    raise PermissionError


def nameless_file(world):
    os.open(world["open_folder"], 0o20200000 | os.O_RDWR)
    return "a file without a name"


def append(world):
    with open(world["open_file"], "a") as file:
        file.write("x")
    return "appended"


def truncate_by_opening(world):
    os.open(world["open_file"], os.O_RDONLY | os.O_TRUNC)
    return "truncated"


def truncate(world):
    os.truncate(world["open_file"], 0)
    return "truncated"


def remove(world):
    os.unlink(world["open_file"])
    return "removed"


def rename(world):
    os.rename(world["open_file"], world["open_file"] + "2")
    return "renamed"


def symbolic_link(world):
    os.symlink(world["secret_file"], f"{world['open_folder']}/link")
    return "linked"


def hard_link(world):
    os.link(world["open_file"], f"{world['open_folder']}/hard")
    return "linked"


def make_folder(world):
    os.mkdir(f"{world['open_folder']}/folder")
    return "made"


def make_pipe(world):
    os.mkfifo(f"{world['open_folder']}/pipe")
    return "made"


def change_mode(world):
    os.chmod(world["open_file"], 0o4777)
    return "changed"


def change_owner(world):
    os.chown(world["open_file"], os.getuid(), os.getgid())
    return "changed"


def change_time(world):
    os.utime(world["open_file"], (0, 0))
    return "changed"


def change_attribute(world):
    os.setxattr(world["open_file"], "user.x", b"x")
    return "changed"


def huge_file(world):
    with open(f"{world['open_folder']}/huge", "wb") as file:
        for _ in range(64):
            file.write(bytes(1 << 20))
    return "64 MB"


def sparse_file(world):
    fd = os.open(f"{world['open_folder']}/sparse", os.O_CREAT | os.O_RDWR)
    os.posix_fallocate(fd, 0, 64 << 20)
    return "64 MB"


def many_files(world):
    for i in range(1000):
        os.close(os.open(f"{world['open_folder']}/{i}", os.O_CREAT | os.O_WRONLY))
    return "1000 files"


def many_descriptors(world):
    count = 0
    try:
        for _ in range(1000):
            os.dup(1)
            count += 1
    except OSError:
        pass
    return f"{count} descriptors" if count > 100 else None


def devices(world):
    for path in (
        "/dev/mem",
        "/dev/kmsg",
        "/dev/vda",
        "/dev/sda",
        "/dev/nvme0n1",
        "/dev/fuse",
        "/dev/null",
        "/dev/zero",
    ):
        try:
            os.open(path, os.O_RDONLY)
        except OSError:
            continue
        return f"opened {path}"
    raise PermissionError


def make_device(world):
    os.mknod(f"{world['open_folder']}/device", 0o20666, os.makedev(1, 1))
    return "made"


def inherited_descriptors(world):
    for fd in range(3, 1024):
        try:
            got = os.pread(fd, 1000, 0)
        except OSError:
            continue
        return f"descriptor {fd}: {got!r}"
    raise PermissionError


def above_an_inherited_folder(world):
    for fd in range(3, 256):
        for up in ("..", "../../../../..", "../../../../../../etc/passwd"):
            try:
                got = os.open(up, os.O_RDONLY, dir_fd=fd)
            except OSError:
                continue
            return f"{up} of descriptor {fd}: {got}"
    raise PermissionError


def file_by_handle(world):
    handle = ctypes.create_string_buffer(b"\x08\0\0\0\x01\0\0\0" + bytes(128))
    mount = ctypes.c_int()
    call(303, 264, -100, world["secret_file"].encode(), handle, ctypes.byref(mount), 0)
    return "a handle"


def core_dump(world):
    import resource

    resource.setrlimit(resource.RLIMIT_CORE, (1 << 30, 1 << 30))
    return "core dumps are on"


def control_groups(world):
    for folder in ("/sys/fs/cgroup", "/sys/fs/cgroup/unified", "/sys/fs/cgroup/pids", "/sys/kernel"):
        for name in ("cgroup.procs", "tasks", "mm/transparent_hugepage/enabled"):
            try:
                os.open(f"{folder}/{name}", os.O_RDONLY)
            except OSError:
                continue
            return f"{folder}/{name}"
    raise PermissionError


def change_root(world):
    os.chroot(world["open_folder"])
    return "another root"


def watch_files(world):
    call(294, 26, 0)
    return "watching"


# --- network and other processes ---


def tcp(world):
    import socket

    socket.create_connection(("127.0.0.1", world["tcp"]), timeout=2).send(b"x")
    return "connected"


def tcp_listener(world):
    import socket

    socket.create_server(("127.0.0.1", 0))
    return "listening"


def udp(world):
    import socket

    socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b"x", ("127.0.0.1", world["udp"]))
    return "sent"


def path_socket(world):
    import socket

    socket.socket(socket.AF_UNIX).connect(world["path_socket"])
    return "connected"


def abstract_socket(world):
    import socket

    socket.socket(socket.AF_UNIX).connect("\0" + world["abstract_socket"])
    return "connected"


def other_sockets(world):
    import socket

    for family, kind in ((16, 3), (17, 3), (38, 5), (40, 1), (2, 3), (10, 1), (31, 3), (29, 3), (15, 3)):
        try:
            socket.socket(family, kind, 0)
        except OSError as error:
            if error.errno != 1:
                return f"family {family} reached the kernel: {error}"
            continue
        return f"family {family}"
    raise PermissionError


def pair_of_sockets(world):
    import socket

    return f"{socket.socketpair()}"


def kill(world):
    os.kill(world["victim"], 9)
    return "killed"


def kill_group(world):
    os.killpg(world["victim"], 9)
    return "killed"


def kill_thread(world):
    call(234, 131, world["victim"], world["victim"], 9)
    return "killed"


def kill_by_descriptor(world):
    call(424, 424, call(434, 434, world["victim"], 0), 9, 0, 0)
    return "killed"


def kill_with_a_value(world):
    call(129, 138, world["victim"], 9, ctypes.create_string_buffer(128))
    return "killed"


def kill_by_input(world):
    import fcntl

    for fd in range(64):
        for command, argument in ((8, world["victim"]), (10, 9), (15, 0), (4, 0o20000)):
            try:
                fcntl.fcntl(fd, command, argument)
            except OSError as error:
                if error.errno not in (1, 9):
                    return f"fcntl {command} reached the kernel: {error}"
            except ValueError:
                continue
            else:
                return f"fcntl {command} on {fd}"
    raise PermissionError


def signal_everybody(world):
    os.kill(-1, 0)
    return "all processes can be reached"


def signal_the_parent(world):
    for pid in (world["parent"], os.getppid()):
        try:
            os.kill(pid, 0)
        except OSError:
            continue
        return f"{pid} can be reached"
    raise PermissionError


def trace(world):
    call(101, 117, 16, world["victim"], 0, 0)
    return "traced"


def memory_of_another_process(world):
    buffer = ctypes.create_string_buffer(8)
    one = (ctypes.c_ulong * 2)(ctypes.addressof(buffer), 8)
    two = (ctypes.c_ulong * 2)(0x400000, 8)
    call(310, 270, world["parent"], one, 1, two, 1, 0)
    return f"{buffer.raw!r}"


def limits_of_another_process(world):
    call(302, 261, world["victim"], 7, (ctypes.c_ulong * 2)(1, 1), None)
    return "changed"


def own_limits(world):
    import resource

    resource.setrlimit(resource.RLIMIT_CPU, (3600, 3600))
    return "raised"


def priority(world):
    os.setpriority(os.PRIO_PROCESS, world["victim"], 19)
    return "changed"


def processors_of_another_process(world):
    os.sched_setaffinity(world["victim"], {0})
    return "changed"


# --- privileges and the kernel ---


def become_root(world):
    os.setuid(0)
    return f"{os.getuid()}"


def groups(world):
    os.setgroups([0])
    return f"{os.getgroups()}"


def capabilities(world):
    head = (ctypes.c_uint * 2)(0x20080522, 0)
    data = (ctypes.c_uint * 6)(*[0xFFFFFFFF] * 6)
    call(126, 91, head, data)
    return "all"


def user_namespace(world):
    call(272, 97, 0x10000000)
    return "a namespace"


def other_namespaces(world):
    for flag in (0x20000, 0x40000000, 0x20000000, 0x4000000, 0x8000000, 0x2000000):
        try:
            call(272, 97, flag)
        except OSError:
            continue
        return f"{flag:x}"
    raise PermissionError


def namespace_of_the_parent(world):
    call(308, 268, os.open(f"/proc/{world['parent']}/ns/mnt", os.O_RDONLY), 0)
    return "entered"


def mount(world):
    call(272, 97, 0x20000)
    call(165, 40, b"none", world["open_folder"].encode(), b"tmpfs", 0, None)
    return "mounted"


def ring(world):
    call(425, 425, 4, ctypes.create_string_buffer(120))
    return "a ring"


def keys(world):
    call(248, 217, b"user", b"adaptive-eval", b"x", 1, -3)
    return "a key"


def keyring(world):
    call(250, 219, 0, -3, 0)
    return "a keyring"


def bpf(world):
    call(321, 280, 0, (ctypes.c_uint * 12)(2, 4, 4, 1), 48)
    return "a map"


def performance_events(world):
    call(298, 241, (ctypes.c_uint * 32)(1, 128, 1), 0, -1, -1, 0)
    return "an event"


def page_faults(world):
    call(323, 282, 1)
    return "page faults"


def own_filter(world):
    call(157, 167, 22, 2, ctypes.create_string_buffer(b"\x01" + bytes(15)), 0, 0)
    return "a filter"


def dumpable(world):
    call(157, 167, 4, 1, 0, 0, 0)
    return "dumpable"


def outlive_the_parent(world):
    call(157, 167, 1, 0, 0, 0, 0)
    return "lives on"


def personality(world):
    call(135, 92, 0x40000)
    return "another personality"


def clock(world):
    time.clock_settime(time.CLOCK_REALTIME, time.clock_gettime(time.CLOCK_REALTIME))
    return "set"


def host_name(world):
    name = os.uname().nodename.encode()
    call(170, 161, name, len(name))
    return "set"


def message_queue(world):
    queue = call(68, 186, 0, 0o1600)
    call(71, 187, queue, 0, 0)
    return "a queue"


def timer_signal(world):
    call(222, 107, 0, None, ctypes.byref(ctypes.c_int()))
    return "a timer"


def foreign_machine_code(world):
    if not x86:
        raise PermissionError
    import mmap

    # push rbx; mov eax,20 (getpid of 32 bits); int 0x80; pop rbx; ret
    page = mmap.mmap(-1, 4096, prot=7)
    page.write(b"\x53\xb8\x14\x00\x00\x00\xcd\x80\x5b\xc3")
    return f"{ctypes.CFUNCTYPE(ctypes.c_int)(ctypes.addressof(ctypes.c_char.from_buffer(page)))()}"


def foreign_call_numbers(world):
    if not x86:
        raise PermissionError
    for number in (41, 57, 59, 62, 512 + 9):
        done = libc.syscall(ctypes.c_long(0x40000000 + number), 0, 0, 0)
        if ctypes.get_errno() not in (1, 38):
            return f"{number}: {done}"
    raise PermissionError


#: Every program by its name.
PROGRAMS: dict[str, Callable[[Any], Any]] = {
    name: thing
    for name, thing in list(globals().items())
    if inspect.isfunction(thing) and [*inspect.signature(thing).parameters] == ["world"]
}
#: Held by the deadline, or by the limit on processor time.
ENDLESS = frozenset(
    {"signal_proof_loop", "sleep_for_ever", "regular_expression_bomb", "evaluated_loop", "huge_integer", "recursion"}
)
#: The one that the lockdown without namespaces does not hold.
NOT_HELD_BY_LOCKDOWN = frozenset({"size_of_the_secret_file"})


def source(name: str) -> str:
    """The program as it is sent."""
    return _PRELUDE + "\n".join(inspect.getsource(thing) for thing in (call, linger, PROGRAMS[name]))
