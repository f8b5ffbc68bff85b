"""sentence-transformers' side of training_speed.py.

The model is made of its own modules from the same weights, the loss is its
own, and the loop is what its trainer does: forward, backward, optimizer step.
"""

import time
from collections.abc import Callable

import numpy as np
import torch
from speed_batches import PROJECTION_DIM, projection_kernel
from speed_protocol import serve


def start(job: dict) -> tuple[Callable[[dict], dict], dict]:
    """Builds model and optimizer; returns the command handler."""
    torch.set_num_threads(job["threads"])
    torch.manual_seed(0)
    side = _Peer(job)
    about = {
        "versions": _versions(),
        "parameters": sum(p.numel() for p in side.model.parameters()),
        "attention": side.model[0].auto_model.config._attn_implementation,
    }
    return lambda command: side.run(command["first"], command["steps"]), about


class _Peer:
    def __init__(self, job: dict) -> None:
        self.job = job
        self.batches = np.load(job["batches"])
        self.model = _model(job)
        self.model.train()
        self.loss = _loss(self.model, job)
        self.optimizer = _optimizer(self.model, job)

    def run(self, first: int, steps: int) -> dict:
        """Trains `steps` batches from number `first` on."""
        batches = [self._features(first + i) for i in range(steps)]
        losses, seconds, cpu_seconds = [], [], []
        for features in batches:
            wall, cpu = time.perf_counter(), time.process_time()
            losses.append(self._step(features))
            seconds.append(time.perf_counter() - wall)
            cpu_seconds.append(time.process_time() - cpu)
        masks = [f["attention_mask"] for b in batches for f in b]
        return {
            "losses": losses,
            "seconds": seconds,
            "cpu_seconds": cpu_seconds,
            "tokens": int(sum(m.sum() for m in masks)),
            "positions": sum(m.numel() for m in masks),
        }

    def _step(self, features: list[dict]) -> float:
        autocast = self.job["dtype"] == "autocast_bfloat16"
        # The model adds its results to the dict that it is given.
        features = [dict(f) for f in features]
        with torch.autocast("cpu", torch.bfloat16, enabled=autocast):
            loss = self.loss(features, None)
        loss.backward()
        self.optimizer.step()
        self.optimizer.zero_grad()
        return loss.item()

    def _features(self, step: int) -> list[dict]:
        features = []
        for side in ("queries", "documents"):
            ids = self.batches[f"{side}_{step}"]
            lengths = self.batches[f"{side}_lengths_{step}"]
            mask = np.arange(ids.shape[1]) < lengths[:, None]
            features.append(
                {
                    "input_ids": torch.tensor(ids, dtype=torch.long),
                    "attention_mask": torch.tensor(mask, dtype=torch.long),
                }
            )
        return features


def _model(job: dict):
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer import modules

    dtype = torch.bfloat16 if job["dtype"] == "bfloat16" else torch.float32
    transformer = modules.Transformer(
        job["preset"],
        config_kwargs={"dropout_rate": job["dropout"]},
        model_kwargs={"torch_dtype": dtype},
    )
    dim = transformer.get_embedding_dimension()
    dense = modules.Dense(
        dim,
        PROJECTION_DIM,
        bias=False,
        activation_function=torch.nn.Identity(),
    )
    kernel = torch.tensor(projection_kernel(dim).T)
    dense.linear.weight.data.copy_(kernel)
    return SentenceTransformer(
        modules=[
            transformer,
            modules.Pooling(dim, pooling_mode="mean"),
            dense.to(dtype),
            modules.Normalize(),
        ],
        device="cpu",
    )


def _loss(model, job: dict):
    from sentence_transformers.sentence_transformer import losses

    return losses.MultipleNegativesRankingLoss(
        model,
        scale=1.0 / job["temperature"],
        directions=("query_to_doc", "query_to_query"),
        partition_mode="joint",
    )


def _optimizer(model, job: dict):
    if job["optimizer"] == "adamw":
        return torch.optim.AdamW(
            model.parameters(),
            lr=job["learning_rate"],
            weight_decay=0.0,
            fused=True,
        )
    from transformers.optimization import Adafactor

    return Adafactor(
        model.parameters(),
        lr=job["learning_rate"],
        scale_parameter=True,
        relative_step=False,
        warmup_init=False,
    )


def _versions() -> str:
    import sentence_transformers
    import transformers

    return (
        f"sentence-transformers {sentence_transformers.__version__}, "
        f"transformers {transformers.__version__}, torch {torch.__version__}"
    )


if __name__ == "__main__":
    serve(start)
