"""DDP on many machines under torchrun: everything from the environment, and a snapshot from which training resumes."""

import os
from pathlib import Path

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch.distributed.elastic.multiprocessing.errors import record
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler

SNAPSHOT, EPOCHS = Path("snapshot.pt"), 4


class Trainer:
    def __init__(self, model, data, optimizer):
        self.local_rank, self.global_rank = int(os.environ["LOCAL_RANK"]), int(os.environ["RANK"])
        self.device = f"cuda:{self.local_rank}" if torch.cuda.is_available() else "cpu"
        self.model, self.data, self.optimizer, self.first = model.to(self.device), data, optimizer, 0
        if SNAPSHOT.exists():
            self.load_snapshot()
        self.model = DDP(self.model)

    def load_snapshot(self):
        snapshot = torch.load(SNAPSHOT, map_location=self.device, weights_only=True)
        self.model.load_state_dict(snapshot["MODEL_STATE"])
        self.optimizer.load_state_dict(snapshot["OPTIMIZER_STATE"])
        self.first = snapshot["EPOCHS_RUN"]
        print(f"Resuming training from snapshot at epoch {self.first}")

    def save_snapshot(self, epoch):
        state = {
            "MODEL_STATE": self.model.module.state_dict(),
            "OPTIMIZER_STATE": self.optimizer.state_dict(),
            "EPOCHS_RUN": epoch + 1,
        }
        torch.save(state, SNAPSHOT)

    def train(self, stop):
        for epoch in range(self.first, stop):
            self.data.sampler.set_epoch(epoch)
            for x, y in self.data:
                self.optimizer.zero_grad()
                loss = F.mse_loss(self.model(x.to(self.device)), y.to(self.device))
                loss.backward()
                self.optimizer.step()
            print(f"[GPU{self.global_rank}] Epoch {epoch} | Loss {loss.item():.4f}")
            if self.local_rank == 0 and self.global_rank == 0:
                self.save_snapshot(epoch)


@record
def main():
    dist.init_process_group("nccl" if torch.cuda.is_available() else "gloo")
    torch.manual_seed(0)
    x = torch.randn(1024, 20)
    data = TensorDataset(x, x.sum(1, keepdim=True))
    model = torch.nn.Linear(20, 1)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.02)
    trainer = Trainer(model, DataLoader(data, 8, sampler=DistributedSampler(data)), optimizer)
    dist.barrier()  # before the snapshot is written again
    trainer.train(trainer.first + EPOCHS // 2)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
