"""DDP on the GPUs of one machine: a trainer class, a sampler that deals out the data, and processes by mp.spawn."""

import argparse
import os

import torch
import torch.multiprocessing as mp
import torch.nn.functional as F
from torch.distributed import destroy_process_group, init_process_group
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler


def ddp_setup(rank, world_size):
    os.environ["MASTER_ADDR"] = "localhost"
    os.environ["MASTER_PORT"] = "12355"
    if torch.cuda.is_available():
        torch.cuda.set_device(rank)
    init_process_group("nccl" if torch.cuda.is_available() else "gloo", rank=rank, world_size=world_size)


class Trainer:
    def __init__(self, model, data, optimizer, rank, save_every):
        self.device = torch.device("cuda", rank) if torch.cuda.is_available() else torch.device("cpu")
        self.model, self.data, self.optimizer = DDP(model.to(self.device)), data, optimizer
        self.rank, self.save_every = rank, save_every

    def run_batch(self, x, y):
        self.optimizer.zero_grad()
        loss = F.cross_entropy(self.model(x), y)
        loss.backward()
        self.optimizer.step()
        return loss.item()

    def run_epoch(self, epoch):
        self.data.sampler.set_epoch(epoch)
        losses = [self.run_batch(x.to(self.device), y.to(self.device)) for x, y in self.data]
        print(f"[GPU{self.rank}] Epoch {epoch} | Steps: {len(self.data)} | Loss: {sum(losses) / len(losses):.4f}")

    def train(self, epochs):
        for epoch in range(epochs):
            self.run_epoch(epoch)
            if self.rank == 0 and epoch % self.save_every == 0:
                torch.save(self.model.module.state_dict(), "checkpoint.pt")


def main(rank, world_size, args):
    ddp_setup(rank, world_size)
    torch.manual_seed(0)
    x = torch.randn(2048, 20)
    data = TensorDataset(x, x[:, :4].argmax(1))
    model = torch.nn.Sequential(torch.nn.Linear(20, 32), torch.nn.ReLU(), torch.nn.Linear(32, 4))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    loader = DataLoader(data, args.batch_size, pin_memory=False, shuffle=False, sampler=DistributedSampler(data))
    Trainer(model, loader, optimizer, rank, args.save_every).train(args.total_epochs)
    destroy_process_group()


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("total_epochs", type=int, nargs="?", default=2)
    parser.add_argument("save_every", type=int, nargs="?", default=1)
    parser.add_argument("--batch_size", type=int, default=16)
    args = parser.parse_args()
    world_size = torch.cuda.device_count()
    mp.spawn(main, args=(world_size, args), nprocs=world_size)
