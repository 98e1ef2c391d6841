# SPDX-License-Identifier: Apache-2.0
"""A recording of tests/machines as the texts that its owner would paste: outputs of the usual commands."""

import json
import pathlib
import re
import subprocess

MACHINES = pathlib.Path("tests/machines")
LEVELS = {0: "PIX", 10: "PXB", 20: "PHB", 30: "NODE", 40: "NODE", 50: "SYS"}


def entries(folder):
    """The files of a recording by path, those of its base below its own."""
    text = pathlib.Path(folder, "machine.txt").read_text()
    files, section, name = {}, "", None
    for line in text.splitlines():
        if line.startswith("base "):
            files.update(entries(pathlib.Path(folder, line[5:])))
        elif line.startswith("["):
            section, name = line[1:-1], None
        elif line.startswith("\t") and name:
            files[name] += line[1:] + "\n"
        elif line.endswith(":") and " " not in line:
            name = f"{section}/{line[:-1]}"
            files[name] = ""
        elif " = " in line:
            key, value = line.split(" = ", 1)
            files[f"{section}/{key}"] = value
        elif line.endswith(" ="):
            files[f"{section}/{line[:-2]}"] = ""
    for path in pathlib.Path(folder).iterdir():
        if path.name not in ("machine.txt", "note.txt") and path.is_file():
            files[path.name] = path.read_text(errors="replace")
    return files


def kernel_log(files):
    log = files.get("kernel-log.txt")
    if log is None:
        return ""
    first = "" if "Linux version" in log else "[    0.000000] Linux version 6.8.0-60-generic\n"
    return first + log.rstrip("\n") + "\n"


def lsmod(files):
    rows = []
    for line in files.get("proc/modules", "").splitlines():
        words = line.split()
        rows.append(f"{words[0]:<23} {words[1]:>7}  {words[2]} {words[3].strip(',-')}".rstrip())
    rows += [f"filler{i:<17} 16384  0" for i in range(12 if rows else 0)]
    return "Module                  Size  Used by\n" + "\n".join(rows) + "\n" if rows else ""


def environment(files):
    names = ("NCCL_", "CUDA_", "UCX_", "NVIDIA_VISIBLE")
    return "".join(f"{line}\n" for line in files.get("environment.txt", "").splitlines() if line.startswith(names))


def driver(files):
    proc = "proc/driver/nvidia"
    out = [files.get(f"{proc}/version", "")]
    params = files.get(f"{proc}/params", "").strip()
    if params:
        fillers = "".join(f"Filler{chr(65 + i)}: 0\n" for i in range(20))
        out.append(f"ResmanDebugLevel: 4294967295\n{params}\n{fillers}")
    return "\n".join(out) + "\n"


def gpu_query(gpu, n):
    def mib(key):
        return f"{gpu[key] >> 20} MiB" if key in gpu else "N/A"

    yield f"GPU {gpu['pci'].upper()}" if gpu["pci"].startswith("0000:") else f"GPU {gpu['pci']}"
    yield f"    Product Name                          : {gpu.get('model', 'N/A')}"
    for key, label in (("compute_mode", "Compute Mode"), ("persistence", "Persistence Mode"), ("vbios", "VBIOS Version")):
        if key in gpu:
            value = {True: "Enabled", False: "Disabled"}.get(gpu[key], gpu[key])
            value = str(value).title().replace("-", "_").replace(" ", "_") if key == "compute_mode" else value
            yield f"    {label:<38}: {value}"
    yield "    MIG Mode"
    yield f"        Current                           : {'Enabled' if gpu.get('mig') or gpu.get('mig_enabled') else 'Disabled'}"
    if "fabric_state" in gpu:
        yield "    Fabric"
        yield f"        State                             : {str(gpu['fabric_state']).replace('-', ' ').title()}"
    yield "    FB Memory Usage"
    yield f"        Total                             : {mib('vram_bytes')}"
    yield "    BAR1 Memory Usage"
    yield f"        Total                             : {mib('bar1_bytes')}"
    if "pcie_gen" in gpu:
        yield "    GPU Link Info"
        yield "        PCIe Generation"
        yield f"            Max                           : {gpu.get('pcie_gen_max', gpu['pcie_gen'])}"
        yield f"            Current                       : {gpu['pcie_gen']}"
        yield "        Link Width"
        yield f"            Max                           : {gpu.get('pcie_width_max', 16)}x"
        yield f"            Current                       : {gpu.get('pcie_width', 16)}x"


def query(machine):
    gpus = [g for g in machine["gpus"] if "nvml_index" in g]
    if not gpus:
        return ""
    lines = ["==============NVSMI LOG==============", ""]
    if "module_version" in machine["driver"]:
        lines.append(f"Driver Version                            : {machine['driver']['module_version']}")
    lines.append(f"Attached GPUs                             : {len(gpus)}")
    for n, gpu in enumerate(sorted(gpus, key=lambda g: g["nvml_index"])):
        lines += gpu_query(gpu, n)
    return "\n".join(lines) + "\n"


def matrix(machine, cell):
    n = len(machine["gpus"])
    cells = {(p["initiator"], p["target"]): cell(p) for p in machine["driver"].get("pairs", [])}
    if len(cells) < n * (n - 1) or None in cells.values():
        return ""
    rows = ["\t" + "\t".join(f"GPU{i}" for i in range(n))]
    for i in range(n):
        rows.append(f" GPU{i}\t" + "\t".join("X" if i == j else cells[i, j] for j in range(n)))
    return "\n".join(rows) + "\n"


def topo(machine):
    return matrix(machine, lambda p: LEVELS.get(p.get("common_ancestor")))


def peers(machine):
    table = matrix(machine, lambda p: p.get("read"))
    return f"$ nvidia-smi topo -p2p r\n{table}" if table else ""


def ibstat(files):
    out = []
    ports = sorted({m.groups() for f in files if (m := re.match(r"sys/class/infiniband/([^/]+)/ports/(\d+)/state", f))})
    for name, port in ports:
        at = f"sys/class/infiniband/{name}"
        value = lambda key, at=at, port=port: files.get(f"{at}/ports/{port}/{key}", "").split(": ")[-1]
        out.append(f"CA '{name}'\n\tCA type: {files.get(f'{at}/hca_type', 'MT4129')}\n\tNumber of ports: 1\n\tPort {port}:")
        out.append(f"\t\tState: {value('state').title()}\n\t\tPhysical state: {value('phys_state')}")
        out.append(f"\t\tRate: {value('rate').split(' ')[0]}\n\t\tLink layer: {value('link_layer')}")
    return "\n".join(out) + "\n" if out else ""


def all_rows(rows):
    """A recording leaves out rows of zeros, which lspci prints."""
    stated = {int(row.split(":")[0], 16): row for row in rows}
    zeros = " ".join(["00"] * 16)
    return [stated.get(at, f"{at:02x}: {zeros}") for at in range(0, max(stated, default=-16) + 16, 16)]


def lspci(folder, files):
    """With what lspci prints of its own: the registers follow in its dump."""
    space = {}
    config = files.get("config-space.txt", "")
    for block in config.split("\n\n"):
        head, *rows = block.strip().splitlines() or [""]
        space[head.split(" ")[0]] = all_rows(rows)
    out = []
    functions = sorted({m.group(1) for f in files if (m := re.match(r"sys/bus/pci/devices/([^/]+)/vendor", f))})
    for name in functions:
        at = f"sys/bus/pci/devices/{name}"
        code = files.get(f"{at}/class", "0x000000")[2:6]
        vendor, device = files[f"{at}/vendor"][2:], files.get(f"{at}/device", "0x0000")[2:]
        out.append(f"{name} Class [{code}]: Device [{vendor}:{device}]")
        out += space.get(name, [])
        out.append("")
    return "\n".join(out) + "\n"


def texts(onehop, folder):
    """Texts by name; what a machine does not have gives none."""
    run = subprocess.run([onehop, "check", "--json", "--from", str(folder)], capture_output=True, text=True, timeout=60)
    if not run.stdout:
        return {}
    machine = json.loads(run.stdout)["machine"]
    files = entries(folder)
    made = {
        "lspci": lspci(folder, files),
        "smi": query(machine),
        "topo": topo(machine),
        "peers": peers(machine),
        "log": kernel_log(files),
        "cmdline": files["proc/cmdline"] + "\n" if "proc/cmdline" in files else "",
        "driver": driver(files),
        "lsmod": lsmod(files),
        "environment": environment(files),
        "ibstat": ibstat(files),
    }
    return {name: text for name, text in made.items() if text.strip()}
