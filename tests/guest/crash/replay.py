#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Rebuilds the disks that a power cut could have left, from a log of writes, and reads each.

A disk with a volatile cache keeps all that was written before its last flush; of what was written
since, it may keep anything. So for each place in the log there are a state with all of it and one
with a random half of its blocks. Each state is read

  as Linux does   e2fsck, which replays the journal, then every file by debugfs
  as GRUB does    grub-fstest, GRUB's own driver, which knows no journal
  as onehop does  history and undo of the tree that Linux would see

Works on what rounds.sh left: DIR/base.img, DIR/log, DIR/out/trees/N (the tree after command N).
"""

import argparse
import collections
import fnmatch
import multiprocessing
import os
import random
import shutil
import stat
import struct
import subprocess
import sys
import tempfile

MAGIC = 0x6A736677736872  # QEMU's blklogwrites, as the kernel's dm-log-writes
FLUSH, FUA, DISCARD, MARK = 1, 2, 4, 8
BLOCK = 4096
STATE_FOLDER = "var/lib/onehop"
FOLDERS = "boot", "etc"
GRUB_CFG = "boot/grub/grub.cfg"
OLD_NAME = ".onehop-old"
CARELESS = "etc/careless"
# What programs read of a folder; anything else there is only litter.
READ_BY_PROGRAMS = (
    "etc/default/grub.d/*.cfg",
    "etc/modprobe.d/*.conf",
    "etc/security/limits.d/*.conf",
    "etc/systemd/system/*.service",
    "etc/systemd/system.conf.d/*.conf",
    "boot/grub/*.cfg",
)

Write = collections.namedtuple("Write", "at data flush")
Phase = collections.namedtuple("Phase", "number running fails")


def read_log(path):
    """The writes in their order."""
    writes = []
    with open(path, "rb") as f:
        magic, _, n, sector = struct.unpack("<QQQI", f.read(28))
        assert magic == MAGIC, "no log of writes"
        at = sector
        for _ in range(n):
            f.seek(at)
            where, sectors, flags, _ = struct.unpack("<QQQQ", f.read(32))
            at += sector
            data = b""
            if sectors and not flags & (DISCARD | MARK):
                f.seek(at)
                data = f.read(sectors * sector)
                at += sectors * sector
            assert not flags & FUA, "a write through the cache: not thought of"
            writes.append(Write(where * sector, data, bool(flags & FLUSH)))
    return writes


def read_phases(writes, end):
    """For each write, which command ran when it was made, or had ended last. None: before the first."""
    phases, now = [], None
    for w in writes:
        if w.at >= end:
            assert len(w.data) == 512, "a mark that went through the page cache, so not in its place"
            word, number, status, *_ = w.data.decode().split()[1:] + ["0"]
            now = Phase(int(number), word == "start", status != "0")
        phases.append(now)
    return phases


def read_tree(root):
    """path -> (permissions, content), for all files and links in FOLDERS."""
    tree = {}
    for folder, name in [(f, n) for top in FOLDERS for f, _, names in os.walk(os.path.join(root, top)) for n in names]:
        full = os.path.join(folder, name)
        path = os.path.relpath(full, root)
        if os.path.islink(full):
            tree[path] = (0, os.readlink(full).encode())
        else:
            with open(full, "rb") as f:
                tree[path] = (stat.S_IMODE(os.stat(full).st_mode), f.read())
    return tree


def is_old_name(path):
    return OLD_NAME in os.path.basename(path)


class Disk:
    """The image of a state, made anew each time: the tools write to it."""

    def __init__(self, base, writes, path):
        self.path, self.size = path, len(base)
        step = 1 << 16
        zero = bytes(step)
        used = {at for at in range(0, len(base), step) if base[at : at + step] != zero[: len(base) - at]}
        for w in writes:
            used.update(range(w.at // step * step, w.at + len(w.data), step))
        self.used, self.step = sorted(used), step

    def make(self, durable, pending):
        with open(self.path, "wb") as f:
            f.truncate(self.size)
            for at in self.used:
                f.seek(at)
                f.write(durable[at : at + self.step])
            for at, data in pending:
                f.seek(at)
                f.write(data)


def blocks(writes):
    return [(w.at + n, w.data[n : n + BLOCK]) for w in writes for n in range(0, len(w.data), BLOCK)]


def run(*argv):
    return subprocess.run(argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)


class Judge:
    """What is right to see in a phase; counts what is not."""

    def __init__(self, trees, phases, onehop, scratch):
        self.trees, self.onehop, self.scratch = trees, onehop, scratch
        self.wrong = collections.defaultdict(list)
        self.count = collections.Counter()
        self.paths = set().union(*trees) - {CARELESS}
        self.careless = max(p.number for p in phases if p)

    def may_be(self, path, phase):
        """The versions of a file; None: missing."""
        trees = [self.trees[phase.number]]
        if phase.running:
            trees.append(self.trees[phase.number - 1])
        if phase.running and phase.fails:  # what it does before it takes it back, another one did before
            trees += self.trees
        return [tree.get(path) for tree in trees]

    def fault(self, check, where, text):
        self.wrong[check].append(f"{where}: {text}")

    def judge_files(self, where, phase, tree):
        good = True
        for path in sorted(self.paths | set(tree)):
            if path == CARELESS:
                continue
            got = tree.get(path)
            if is_old_name(path):
                base = path[: path.rindex(OLD_NAME)]
                good_ones = [None] + [t.get(base) for t in self.trees]
            elif path in self.paths:
                good_ones = self.may_be(path, phase)
            else:
                if any(fnmatch.fnmatch(path, p) for p in READ_BY_PROGRAMS):
                    if not os.path.basename(path).startswith("."):
                        self.fault("litter", where, f"{path} would be read")
                self.count["litter"] += 1
                continue
            if got not in good_ones:
                good = False
                what = "missing" if got is None else f"mode {got[0]:o}, {len(got[1])} bytes, {got[1][:40]!r}"
                self.fault("linux", where, f"{path}: {what}")
        self.count["whole"] += good

    def judge_careless(self, tree):
        data = tree.get(CARELESS, (0, b"missing"))[1]
        lines = set(data.splitlines()[:-1])
        self.count["careless states"] += 1
        self.count["careless torn"] += len(data) != 5 * BLOCK or len(lines) != 1

    def judge_grub(self, where, phase, image):
        """GRUB reads no journal: it may still see what an earlier command left, but whole."""
        seen = run("grub-fstest", image, "cat", f"(loop0)/{GRUB_CFG}").stdout
        versions = [t[GRUB_CFG][1] for t in self.trees[: phase.number + 1] if GRUB_CFG in t]
        if seen not in versions:
            self.fault("grub", where, f"{GRUB_CFG}: {len(seen)} bytes, {seen[:60]!r}")
        elif seen not in [v and v[1] for v in self.may_be(GRUB_CFG, phase)]:
            self.count["grub sees older"] += 1

    def judge_journal(self, where, phase, root):
        """The journal can be read, and the next run ends as if nothing had ever been done."""
        fixes = os.path.join(root, STATE_FOLDER, "fixes")
        n = len(os.listdir(fixes)) if os.path.isdir(fixes) else 0
        history = run(self.onehop, "history", "--root", root)
        if history.returncode != 0:
            self.fault("journal", where, f"history: status {history.returncode}: {history.stdout.decode(errors='replace')}")
        for _ in range(n + 1):
            undo = run(self.onehop, "undo", "--root", root)
            if undo.returncode != 0:
                break
        after, first = read_tree(root), self.trees[0]
        for path in sorted(set(after) | set(first)):
            if path == CARELESS or is_old_name(path):
                continue
            if after.get(path) != first.get(path):
                last = undo.stdout.decode(errors="replace")
                self.fault("undo", where, f"{path} is not as it was; undo: status {undo.returncode}: {last}")
                break
        again = run(self.onehop, "history", "--root", root)
        if again.returncode != 0:
            self.fault("journal", where, f"history after undo: {again.stdout.decode(errors='replace')}")
        self.count["journal states"] += 1

    def judge(self, where, phase, image):
        self.judge_grub(where, phase, image)
        fsck = run("e2fsck", "-fy", image)
        if fsck.returncode not in (0, 1):
            self.fault("fsck", where, f"e2fsck: status {fsck.returncode}: {fsck.stdout.decode(errors='replace')}")
        root = os.path.join(self.scratch, "tree")
        shutil.rmtree(root, ignore_errors=True)
        os.mkdir(root)
        run("debugfs", "-R", f"rdump / {root}", image)
        shutil.rmtree(os.path.join(root, "lost+found"), ignore_errors=True)
        tree = read_tree(root)
        self.judge_files(where, phase, tree)
        if phase.number == self.careless:
            self.judge_careless(tree)
        else:
            self.judge_journal(where, phase, root)


def places(writes, phases, wanted, seed):
    """(write, all or half) of the states: all of them, or `wanted` of them, spread at random, and all of the careless writer."""
    every, pending = [], False
    for n, w in enumerate(writes):
        pending = (pending and not w.flush) or bool(w.data)
        if phases[n]:
            every += [(n, False), (n, True)] if pending else [(n, False)]
    if len(every) > wanted:
        last = max(p.number for p in phases if p)
        careless = {s for s in every if phases[s[0]].number == last}
        every = sorted(careless.union(random.Random(seed).sample(every, wanted)))
    return every


def work(job):
    """One worker: goes through the log, judges its share of the states."""
    args, share, of = job
    trees = read_trees(args.dir)
    writes = read_log(os.path.join(args.dir, "log"))
    phases = read_phases(writes, args.mib << 20)
    with open(os.path.join(args.dir, "base.img"), "rb") as f:
        base = f.read()
    every = places(writes, phases, args.states, args.seed)
    mine = set(every[share::of])
    # In the middle of commands, spread over all of them; the careless writer is none.
    inside = [s for s in every if phases[s[0]].running and phases[s[0]].number < len(trees) - 1]
    kept_states = set(inside[:: max(len(inside) // args.keep, 1)][: args.keep]) if args.keep else set()
    scratch = tempfile.mkdtemp(dir="/dev/shm" if os.access("/dev/shm", os.W_OK) else None)
    judge = Judge(trees, phases, args.onehop, scratch)
    disk = Disk(base, writes, os.path.join(scratch, "disk.img"))
    durable, pending = bytearray(base), []
    try:
        for n, w in enumerate(writes):
            if w.flush:
                for p in pending:
                    durable[p.at : p.at + len(p.data)] = p.data
                pending = []
            if w.data:
                pending.append(w)
            for half in (False, True):
                if (n, half) not in mine:
                    continue
                kept = blocks(pending)
                if half:
                    chance = random.Random(f"{args.seed} {n}")
                    kept = [b for b in kept if chance.random() < 0.5]
                disk.make(durable, kept)
                p = phases[n]
                where = f"write {n}{', half of the cache' if half else ''}, {'in' if p.running else 'after'} {p.number}"
                if (n, half) in kept_states:
                    shutil.copyfile(disk.path, os.path.join(args.dir, "states", f"{n}{'-half' * half}-in-{phases[n].number}.img"))
                judge.judge(where, p, disk.path)
                judge.count["states"] += 1
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    return dict(judge.wrong), judge.count


def read_trees(folder):
    root = os.path.join(folder, "out", "trees")
    return [read_tree(os.path.join(root, str(n))) for n in range(len(os.listdir(root)))]


def say(name, faults, count):
    if not faults:
        print(f"ok - {name} ({count} states)")
        return
    print(f"FAIL - {name}: {len(faults)} of {count} states")
    for f in faults[:8]:
        print("# " + f.replace("\n", "\n#   "))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--dir", required=True)
    parser.add_argument("--mib", type=int, required=True, help="size of the file system")
    parser.add_argument("--onehop", required=True)
    parser.add_argument("--states", type=int, default=600)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--keep", type=int, default=0, help="images to leave in DIR/states")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    args = parser.parse_args()
    args.onehop = os.path.abspath(args.onehop)

    wrong, count = collections.defaultdict(list), collections.Counter()
    with multiprocessing.Pool(args.jobs) as pool:
        for w, c in pool.imap(work, [(args, n, args.jobs) for n in range(args.jobs)]):
            count.update(c)
            for check, faults in w.items():
                wrong[check] += faults

    n = count["states"]
    print(
        f"{n} states: {count['whole']} with every file old or new; GRUB saw what was before the last command in "
        f"{count['grub sees older']}; {count['litter']} files lay beside, {len(wrong['litter'])} that would be read"
    )
    if n < 500 <= args.states:
        print(f"FAIL - states: {n}, want at least 500")
    say("Linux: every file is old or new, and new once a command has ended", wrong["linux"], n)
    say("Linux: the file system is sound", wrong["fsck"], n)
    say("Linux: nothing lies beside a file that a program would read", wrong["litter"], n)
    say("GRUB: grub.cfg is whole", wrong["grub"], n)
    say("onehop history reads the journal", wrong["journal"], count["journal states"])
    say("onehop undo brings back the first tree", wrong["undo"], count["journal states"])
    torn, seen = count["careless torn"], count["careless states"]
    if torn:
        print(f"ok - a careless writer is caught ({torn} of {seen} states)")
    else:
        print(f"FAIL - a careless writer is caught: 0 of {seen} states")
    return any(wrong.values()) or not torn


if __name__ == "__main__":
    sys.exit(main())
