"""Make the T5 folders and reference outputs that the tests compare with.

Needs packages that the library does not: `pip install torch==2.13.0
transformers==5.24.0 safetensors sentencepiece numpy`. Run from the root of
the repository:

    python tests/data_files/make_t5_goldens.py
    python tests/data_files/make_t5_goldens.py \
        --real_weights=../shared/data/t5_small_encoder

The first writes `t5_tiny_relu/` and `t5_tiny_gated_gelu/` (random weights in
Hugging Face's layout) with `t5_tiny_*_golden.npz` beside them; the second
writes `t5_small_encoder_golden.npz`, outputs only. All outputs come from
`transformers.T5EncoderModel` in float32 on the CPU.
"""

import argparse
import pathlib

import numpy as np
import torch
import transformers

HERE = pathlib.Path(__file__).parent
TINY_LENGTHS = (1, 2, 17, 40, 150)  # 150 passes the farthest position bucket
TINY_VOCABULARY = 384
SENTENCES = (
    "",
    "What are the symptoms of Adult Acute Lymphoblastic Leukemia ?",
    "shutil.rmtree(path, ignore_errors=False, onerror=None)",
    "Ein kleiner Satz mit Umlauten: Größe, Straße, naïve façade.",
    "The quick brown fox jumps over the lazy dog. " * 16,
)


def padded(rows: list[list[int]]) -> tuple[np.ndarray, np.ndarray]:
    """Return int32 token ids and padding mask, both [batch, seq]."""
    shape = (len(rows), max(map(len, rows)))
    token_ids = np.zeros(shape, np.int32)
    padding_mask = np.zeros(shape, np.int32)
    for i, row in enumerate(rows):
        token_ids[i, : len(row)] = row
        padding_mask[i, : len(row)] = 1
    return token_ids, padding_mask


def encode(
    model: transformers.T5EncoderModel,
    token_ids: np.ndarray,
    padding_mask: np.ndarray,
) -> np.ndarray:
    """Return the float32 outputs [batch, seq, hidden] of the reference."""
    with torch.no_grad():
        output = model(
            input_ids=torch.from_numpy(token_ids).long(),
            attention_mask=torch.from_numpy(padding_mask).long(),
        )
    return output.last_hidden_state.numpy()


def randomise(model: transformers.T5EncoderModel) -> None:
    """Draw weights at which every part of the network matters.

    Transformers' own initial values leave the position bias and the
    attention scores close to zero: mistakes there would not show.
    """
    generator = torch.Generator().manual_seed(0)
    for name, parameter in model.named_parameters():
        noise = torch.randn(parameter.shape, generator=generator)
        if name.endswith("layer_norm.weight"):
            noise = 1.0 + 0.3 * noise
        elif "relative_attention_bias" not in name and "shared" not in name:
            noise *= parameter.shape[1] ** -0.5
        parameter.data = noise


def make_tiny(name: str, feed_forward: str) -> None:
    """Write one folder of random weights and its outputs."""
    config = transformers.T5Config(
        vocab_size=TINY_VOCABULARY,
        d_model=32,
        d_kv=12,  # num_heads * d_kv differs from d_model on purpose
        d_ff=48,
        num_layers=2,
        num_heads=2,
        feed_forward_proj=feed_forward,
        architectures=["T5EncoderModel"],
    )
    model = transformers.T5EncoderModel(config).eval()
    randomise(model)
    model.save_pretrained(HERE / name)

    generator = np.random.default_rng(0)
    token_ids, padding_mask = padded(
        [
            [*generator.integers(3, TINY_VOCABULARY, length - 1), 1]
            for length in TINY_LENGTHS
        ]
    )
    output = encode(model, token_ids, padding_mask)
    np.savez_compressed(
        HERE / f"{name}_golden.npz",
        token_ids=token_ids,
        padding_mask=padding_mask,
        real_outputs=output[padding_mask > 0],
    )


def make_real(directory: str) -> None:
    """Write outputs of real weights at selected positions, and their mean."""
    import sentencepiece

    tokenizer = sentencepiece.SentencePieceProcessor(
        model_file=str(pathlib.Path(directory, "spiece.model"))
    )
    model = transformers.T5EncoderModel.from_pretrained(
        directory, dtype=torch.float32
    ).eval()
    token_ids, padding_mask = padded(
        [[*tokenizer.encode(text), 1] for text in SENTENCES]
    )
    output = encode(model, token_ids, padding_mask)
    lengths = padding_mask.sum(1)
    positions = np.stack([0 * lengths, lengths // 2, lengths - 1], axis=1)
    positions = np.minimum(positions, lengths[:, None] - 1)
    weights = padding_mask[..., None].astype(np.float64)
    np.savez_compressed(
        HERE / "t5_small_encoder_golden.npz",
        token_ids=token_ids,
        padding_mask=padding_mask,
        positions=positions,
        outputs=np.take_along_axis(output, positions[..., None], axis=1),
        means=(output * weights).sum(1) / weights.sum(1),
        scale=np.abs(output[padding_mask > 0]).max(),
    )


def main() -> None:
    """Make the tiny folders, or the outputs of real weights."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--real_weights", help="a Hugging Face T5 folder")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    if arguments.real_weights:
        make_real(arguments.real_weights)
        return
    make_tiny("t5_tiny_relu", "relu")
    make_tiny("t5_tiny_gated_gelu", "gated-gelu")


if __name__ == "__main__":
    main()
