#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Rebuilds the boot partitions that a power cut could have left, and reads the entries of each.

What was written before the last flush is there; of what was written since, all, or a random half of its
sectors. Works on what cut-rounds.sh left: DIR/base.img, DIR/log, DIR/out/entries/N, DIR/out/state/N.
"""

import argparse
import collections
import multiprocessing
import os
import random
import shutil
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "crash"))
import replay  # noqa: E402

SECTOR = 512
KEPT = ".onehop-old.conf"
TRIAL = "_-onehop-trial.conf"
FOLDER = "loader/entries"


def read_folder(path):
    if not os.path.isdir(path):
        return {}
    entries = {}
    for name in os.listdir(path):
        with open(os.path.join(path, name), "rb") as f:
            entries[name] = f.read()
    return entries


def read_image(image, scratch):
    """The entries as one who knows no repair reads them."""
    entries = {}
    for path in replay.run("mdir", "-i", image, "-b", f"::/{FOLDER}").stdout.decode(errors="replace").splitlines():
        name = os.path.basename(path)
        copy = os.path.join(scratch, "entry")
        if name and path.startswith("::") and replay.run("mcopy", "-i", image, "-n", "-o", f"::/{FOLDER}/{name}", copy).returncode == 0:
            with open(copy, "rb") as f:
                entries[name] = f.read()
    return entries


def kept_of(name):
    """Where the old entry of that name is kept."""
    return name.removesuffix(".conf").split("+")[0] + KEPT


class Judge:
    def __init__(self, args, scratch):
        self.args, self.scratch = args, scratch
        out = os.path.join(args.dir, "out")
        self.entries = [read_folder(os.path.join(out, "entries", str(n))) for n in range(len(os.listdir(os.path.join(out, "entries"))))]
        self.wrong, self.count = collections.defaultdict(list), collections.Counter()

    def whole(self, found, name, phase):
        """The entry is there, with the content of before or after the command."""
        trees = [self.entries[phase.number]] + ([self.entries[phase.number - 1]] if phase.running else [])
        good = [t[name] for t in trees]
        if found.get(name) in good:
            return True
        by_copy = phase.running and found.get(kept_of(name)) in good
        self.count["by the copy"] += by_copy
        return by_copy

    def judge_entries(self, check, where, phase, found):
        for name in [*self.entries[0], *([TRIAL] if TRIAL in self.entries[phase.number] and not phase.running else [])]:
            if not self.whole(found, name, phase):
                got = found.get(name)
                self.wrong[check].append(f"{where}: {name}: {'missing' if got is None else f'{len(got)} bytes'}")
        for name in found:
            if name.endswith(".conf") and name not in self.entries[0] and not name.endswith(KEPT) and not (name == TRIAL and self.may_be_on_trial(phase)):
                self.wrong["litter"].append(f"{where}: {name} would be read")

    def may_be_on_trial(self, phase):
        """The trial's entry is for one boot, whatever it holds; it has to be whole once its command has ended."""
        return TRIAL in self.entries[phase.number] or phase.running and TRIAL in self.entries[phase.number - 1]

    def command(self, number):
        with open(os.path.join(self.args.dir, "out", f"{number}.command"), encoding="utf-8") as f:
            return f.read().strip()

    @staticmethod
    def forget_end_of_trial(log):
        """What a cut leaves of the log before a confirmation takes the trial's entry away: that is on disk before its line is."""
        with open(log, encoding="utf-8") as f:
            lines = f.readlines()
        end = next(n for n, line in enumerate(lines) if '"mark":"undo' in line)
        with open(log, "w", encoding="utf-8") as f:
            f.writelines(lines[:end])

    def judge_undo(self, where, phase, found):
        """What the next run makes of it, with the journal of the fix."""
        command = self.command(phase.number)
        state = phase.number - (command == "onehop undo")
        root = os.path.join(self.scratch, "root")
        shutil.rmtree(root, ignore_errors=True)
        shutil.copytree(os.path.join(self.args.dir, "tree"), root)
        shutil.copytree(os.path.join(self.args.dir, "out", "state", str(state)), os.path.join(root, "var/lib"), dirs_exist_ok=True)
        if command.endswith("--confirm"):
            fixes = os.path.join(root, "var/lib/onehop/fixes")
            self.forget_end_of_trial(os.path.join(fixes, max(os.listdir(fixes), key=int), "log.jsonl"))
        folder = os.path.join(root, "boot", FOLDER)
        os.makedirs(folder)
        for name, data in found.items():
            with open(os.path.join(folder, name), "wb") as f:
                f.write(data)
        undo = replay.run(self.args.onehop, "undo", "--yes", "--root", root)
        after = read_folder(folder)
        if undo.returncode or {n: after.get(n) for n in self.entries[0]} != self.entries[0] or any(n.endswith(KEPT) or n == TRIAL for n in after):
            said = undo.stdout.decode(errors="replace")
            self.wrong["undo"].append(f"{where}: {sorted(after)}; undo: status {undo.returncode}: {said}")
        self.count["undone"] += 1

    def judge(self, where, phase, image):
        self.judge_entries("firmware", where, phase, read_image(image, self.scratch))
        fsck = replay.run("fsck.fat", "-a", image)
        self.count["repaired"] += fsck.returncode == 1
        if fsck.returncode not in (0, 1):
            self.wrong["fsck"].append(f"{where}: status {fsck.returncode}: {fsck.stdout.decode(errors='replace')}")
        found = read_image(image, self.scratch)
        self.judge_entries("linux", where, phase, found)
        if phase.running:
            self.judge_undo(where, phase, found)


def sectors(writes):
    return [(w.at + n, w.data[n : n + SECTOR]) for w in writes for n in range(0, len(w.data), SECTOR)]


def work(job):
    args, share, of = job
    writes = replay.read_log(os.path.join(args.dir, "log"))
    phases = replay.read_phases(writes, args.mib << 20)
    with open(os.path.join(args.dir, "base.img"), "rb") as f:
        base = f.read()
    mine = set(replay.places(writes, phases, args.states, args.seed)[share::of])
    scratch = tempfile.mkdtemp(dir="/dev/shm" if os.access("/dev/shm", os.W_OK) else None)
    judge = Judge(args, scratch)
    disk = replay.Disk(base, writes, os.path.join(scratch, "disk.img"))
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
                kept = sectors(pending)
                if half:
                    chance = random.Random(f"{args.seed} {n}")
                    kept = [s for s in kept if chance.random() < 0.5]
                disk.make(durable, kept)
                p = phases[n]
                judge.judge(f"write {n}{', half of the cache' if half else ''}, {'in' if p.running else 'after'} {p.number}", p, disk.path)
                judge.count["states"] += 1
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    return dict(judge.wrong), judge.count


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--dir", required=True)
    parser.add_argument("--mib", type=int, required=True, help="size of the file system")
    parser.add_argument("--onehop", required=True)
    parser.add_argument("--states", type=int, default=100000)
    parser.add_argument("--seed", type=int, default=1)
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
    print(f"# {n} states, {count['repaired']} of which fsck.fat changed")
    if n < 100:
        print(f"FAIL - states: {n}, want at least 100")
    replay.say("firmware: each entry is there, whole, old or new", wrong["firmware"], n)
    replay.say("after fsck.fat: the same", wrong["linux"], n)
    replay.say("fsck.fat repairs it", wrong["fsck"], n)
    replay.say("nothing else would be read as an entry", wrong["litter"], n)
    replay.say("onehop undo brings the entries back, and no copy stays", wrong["undo"], count["undone"])
    # Else the copy would be for nothing, or this would not see what it is for.
    if count["by the copy"]:
        print(f"ok - the copy is needed ({count['by the copy']} times an entry was empty or gone)")
    else:
        print("FAIL - the copy is needed: no entry was empty or gone")
    return any(wrong.values()) or not count["by the copy"]


if __name__ == "__main__":
    sys.exit(main())
