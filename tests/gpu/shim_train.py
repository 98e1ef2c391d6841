# SPDX-License-Identifier: Apache-2.0
"""shim_train.py ddp|fsdp|ops|graphs|small: what an application does with PyTorch; knows nothing of the shim. torchrun starts it.

ddp, fsdp  trains a small model, and rank 0 prints each loss as a hexadecimal number
ops        collectives of all kinds in two communicators, eager and in a graph, for SECONDS; checks every result
graphs     two graphs and calls outside of them, all of one communicator and on three streams that do not wait for each other, for
           SECONDS_OF_OPS; checks every result
small      rank 0 prints the time of an all-reduce of 8 bytes: median of many, in us
"""

import os
import random
import statistics
import sys
import time

import torch
import torch.distributed as dist


def model():
    torch.manual_seed(1)
    return torch.nn.Sequential(torch.nn.Linear(256, 512), torch.nn.ReLU(), torch.nn.Linear(512, 512), torch.nn.ReLU(),
                               torch.nn.Linear(512, 16)).cuda()


def train(wrap):
    net = wrap(model())
    optimizer = torch.optim.SGD(net.parameters(), lr=0.05)
    torch.manual_seed(100 + dist.get_rank())
    x, y = torch.randn(64, 256, device="cuda"), torch.randn(64, 16, device="cuda")
    for step in range(40):
        optimizer.zero_grad()
        loss = torch.nn.functional.mse_loss(net(x), y)
        loss.backward()
        optimizer.step()
        mean = loss.detach().clone()
        dist.all_reduce(mean, op=dist.ReduceOp.AVG)
        if dist.get_rank() == 0:
            print("loss", step, mean.item().hex(), flush=True)


def ddp():
    from torch.nn.parallel import DistributedDataParallel
    train(lambda net: DistributedDataParallel(net, device_ids=[torch.cuda.current_device()]))


def fsdp():
    from torch.distributed.fsdp import FullyShardedDataParallel
    train(lambda net: FullyShardedDataParallel(net, use_orig_params=True))


def one_round(group, n, me, dice):
    """The same numbers on every rank, so that all call the same."""
    count = dice.choice([1, 2, 3, 7, 64, 1000, 4097, 65536, 1 << 20])
    kind = dice.choice(["all_reduce", "max", "all_gather", "reduce_scatter", "broadcast", "reduce"])
    dtype = dice.choice([torch.float32, torch.bfloat16, torch.int32, torch.int64, torch.float64])
    base = torch.arange(count, device="cuda").remainder(8).to(dtype)
    mine = base + me
    total = base * n + n * (n - 1) // 2
    if kind in ("all_reduce", "max"):
        dist.all_reduce(mine, op=dist.ReduceOp.SUM if kind == "all_reduce" else dist.ReduceOp.MAX, group=group)
        return torch.equal(mine, total if kind == "all_reduce" else base + (n - 1))
    if kind == "all_gather":
        out = torch.empty(n * count, dtype=dtype, device="cuda")
        dist.all_gather_into_tensor(out, mine, group=group)
        return torch.equal(out, torch.cat([base + r for r in range(n)]))
    if kind == "reduce_scatter":
        out = torch.empty(count, dtype=dtype, device="cuda")
        dist.reduce_scatter_tensor(out, (base + me).repeat(n), group=group)
        return torch.equal(out, total)
    root = dice.randrange(n)
    if kind == "broadcast":
        dist.broadcast(mine, src=root, group=group)
        return torch.equal(mine, base + root)
    dist.reduce(mine, dst=root, group=group)
    return me != root or torch.equal(mine, total)


def graph_of(group, n):
    """What the graph reads must live as long as it: another tensor would get its memory."""
    data, out = torch.ones(1024, device="cuda"), torch.empty(1024, device="cuda")
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        dist.all_reduce(data.clone(), group=group)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        out.copy_(data)
        dist.all_reduce(out, group=group)
    return graph, data, out


def ops():
    n, me = dist.get_world_size(), dist.get_rank()
    groups = [dist.group.WORLD, dist.new_group(list(range(n)))]
    graph, data, out = graph_of(groups[0], n)
    dice, wrong, in_graph, rounds = random.Random(7), 0, 0, 0
    end = torch.tensor([time.time() + float(os.environ.get("SECONDS_OF_OPS", "60"))], dtype=torch.float64, device="cuda")
    dist.broadcast(end, src=0)
    free = []
    going = torch.ones(1, device="cuda")
    while True:
        for _ in range(50):
            wrong += not one_round(dice.choice(groups), n, me, dice)
        data.fill_(rounds % 7 + 1)
        graph.replay()
        torch.cuda.synchronize()
        in_graph += not torch.equal(out, data * n)
        rounds += 51
        free.append(torch.cuda.mem_get_info()[0])
        going.fill_(float(time.time() < end.item()))
        dist.all_reduce(going, op=dist.ReduceOp.MIN)
        if going.item() == 0:
            break
    bad = torch.tensor([wrong, in_graph], device="cuda")
    dist.all_reduce(bad)
    if me == 0:
        settled = free[len(free) // 4:]
        print(f"ops {rounds} wrong {int(bad[0])} wrong in graphs {int(bad[1])} memory {max(settled) - min(settled)}", flush=True)
    if bad.any():
        sys.exit(1)


def repeated(group, data, out):
    """A graph of several calls, each on what the one before gave, divided by the number of ranks."""
    n = dist.get_world_size()
    graph = torch.cuda.CUDAGraph()
    torch.cuda.synchronize()
    with torch.cuda.graph(graph):
        out.copy_(data)
        for _ in range(5):
            dist.all_reduce(out, group=group)
            out.div_(n)
    return graph


def graphs():
    n, me = dist.get_world_size(), dist.get_rank()
    group = dist.group.WORLD
    dist.all_reduce(torch.ones(1, device="cuda"), group=group)
    counts = [1000, 300_000]
    data = [torch.zeros(c, device="cuda") for c in counts]
    out = [torch.zeros(c, device="cuda") for c in counts]
    ready = [repeated(group, d, o) for d, o in zip(data, out)]
    streams = [torch.cuda.Stream() for _ in counts]
    eager = [torch.zeros(c, device="cuda") for c in (500, 65536, 1 << 20)]
    end = time.time() + float(os.environ.get("SECONDS_OF_OPS", "60"))
    rounds, wrong = 0, 0
    going = torch.ones(1, device="cuda")
    while True:
        for d in data:
            d.fill_(me + rounds % 5)
        for e in eager:
            e.fill_(me + rounds % 3)
        torch.cuda.synchronize()
        for i, e in enumerate(eager):
            if i < len(ready):
                with torch.cuda.stream(streams[i]):
                    ready[i].replay()
            dist.all_reduce(e, group=group)
        torch.cuda.synchronize()
        sum_of_ranks = n * (n - 1) // 2
        for e in eager:
            wrong += not bool((e == sum_of_ranks + n * (rounds % 3)).all())
        for o in out:
            wrong += not bool((o == sum_of_ranks / n + rounds % 5).all())
        rounds += 1
        if rounds % 20 == 0:
            going.fill_(float(time.time() < end))
            dist.all_reduce(going, op=dist.ReduceOp.MIN)
            if going.item() == 0:
                break
    bad = torch.tensor([wrong], device="cuda")
    dist.all_reduce(bad)
    if me == 0:
        print(f"graphs {rounds} rounds, wrong {int(bad[0])}", flush=True)
    if bad.any():
        sys.exit(1)


def small():
    data = torch.ones(2, device="cuda")
    for _ in range(200):
        dist.all_reduce(data)
    times = []
    for _ in range(60):
        torch.cuda.synchronize()
        start = time.perf_counter()
        for _ in range(100):
            dist.all_reduce(data)
        torch.cuda.synchronize()
        times.append((time.perf_counter() - start) * 1e4)
    if dist.get_rank() == 0:
        print(f"small {statistics.median(times):.3f}", flush=True)


def main():
    torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    dist.init_process_group("nccl")
    {"ddp": ddp, "fsdp": fsdp, "ops": ops, "graphs": graphs, "small": small}[sys.argv[1]]()
    dist.destroy_process_group()


main()
