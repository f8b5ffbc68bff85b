"""Write the names and shapes of all weights of every published size.

Needs packages that the library does not: `pip install torch==2.14.1
transformers==5.25.0`. Run from the root of the repository:

    python tests/data_files/make_golden_shapes.py

Writes `golden_shapes/<size>.json`: for each tensor of
`transformers.T5EncoderModel`, made from the sizes in this file on torch's meta
device, its shape there; and the bias-free projection of sentence-transformers'
Dense module. The sizes are those of the published `config.json` files and are
written down here once more, independently of `MODEL_SIZES`.
"""

import json
import pathlib

import torch
import transformers

FOLDER = pathlib.Path(__file__).parent / "golden_shapes"
PROJECTION_DIM = 768
# d_model, d_ff, d_kv, heads, layers
T5_1_0 = {
    "small": (512, 2048, 64, 8, 6),
    "base": (768, 3072, 64, 12, 12),
    "large": (1024, 4096, 64, 16, 24),
    "xl": (1024, 16384, 128, 32, 24),
    "xxl": (1024, 65536, 128, 128, 24),
}
T5_1_1 = {
    "small": (512, 1024, 64, 6, 8),
    "base": (768, 2048, 64, 12, 12),
    "large": (1024, 2816, 64, 16, 24),
    "xl": (2048, 5120, 64, 32, 24),
    "xxl": (4096, 10240, 64, 64, 24),
}


def write(name: str, sizes: tuple[int, ...], feed_forward: str) -> None:
    """Write the file of one size."""
    d_model, d_ff, d_kv, heads, layers = sizes
    config = transformers.T5Config(
        vocab_size=32128,
        d_model=d_model,
        d_ff=d_ff,
        d_kv=d_kv,
        num_heads=heads,
        num_layers=layers,
        feed_forward_proj=feed_forward,
    )
    with torch.device("meta"):
        model = transformers.T5EncoderModel(config)
    shapes = {n: list(p.shape) for n, p in model.named_parameters()}
    shapes["linear.weight"] = [PROJECTION_DIM, d_model]
    lines = [f'  "{n}": {json.dumps(s)}' for n, s in sorted(shapes.items())]
    text = "{\n" + ",\n".join(lines) + "\n}\n"
    (FOLDER / f"{name}.json").write_text(text, encoding="utf-8")


def main() -> None:
    """Write all sizes."""
    FOLDER.mkdir(exist_ok=True)
    for size, numbers in T5_1_0.items():
        write(f"t5_{size}", numbers, "relu")
        if size != "small":
            write(f"gtr_{size}", numbers, "relu")
    for size, numbers in T5_1_1.items():
        write(f"t5_1.1_{size}", numbers, "gated-gelu")


if __name__ == "__main__":
    main()
