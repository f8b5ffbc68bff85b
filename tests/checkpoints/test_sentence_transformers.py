"""sentence-transformers folders that must, and must not, be loaded.

Values of the embeddings: test_sentence_transformers_parity.
"""

import json
import pathlib
import shutil
import sys

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file
from sbert_folders import TANH, SentenceTransformersFolder

from tf_samtone.checkpoints import is_sentence_transformers_folder
from tf_samtone.errors import (
    CorruptFileError,
    InvalidInputError,
    MismatchError,
    MissingDependencyError,
)
from tf_samtone.models import ARCHITECTURES, DualEncoder

WO = "encoder.block.0.layer.1.DenseReluDense.wo.weight"


@pytest.fixture
def make_folder(tmp_path):
    def make(**options) -> pathlib.Path:
        folder = tmp_path / "sbert"
        SentenceTransformersFolder(**options).write(folder)
        return folder

    return make


@pytest.fixture
def folder(make_folder) -> pathlib.Path:
    return make_folder(dense="bare")


def change(path: pathlib.Path, **changes) -> None:
    content = json.loads(path.read_text()) if path.exists() else {}
    path.write_text(json.dumps({**content, **changes}))


def change_tensors(path: pathlib.Path, **changes) -> None:
    tensors = {**load_file(path), **changes}
    save_file({k: v for k, v in tensors.items() if v is not None}, path)


def modules(folder: pathlib.Path, change) -> None:
    path = folder / "modules.json"
    path.write_text(json.dumps(change(json.loads(path.read_text()))))


def test_a_folder_is_recognised_by_its_modules(folder, tmp_path):
    assert is_sentence_transformers_folder(folder)
    assert not is_sentence_transformers_folder(tmp_path)


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_one_tower_may_become_any_architecture(folder, architecture):
    model = DualEncoder.from_preset(folder, architecture=architecture)
    np.testing.assert_array_equal(
        model.encode_queries(["a cat"]), model.encode_documents(["a cat"])
    )
    assert model.architecture == architecture


def test_the_length_of_the_folder_holds_for_both_sides(make_folder):
    model = DualEncoder.from_preset(make_folder(max_seq_length=77))
    assert model.query_preprocessor.sequence_length == 77
    assert model.document_preprocessor.sequence_length == 77


@pytest.mark.parametrize("length", [None, int(1e30)], ids=["none", "endless"])
def test_without_a_length_texts_are_cut_at_512(folder, length):
    change(folder / "sentence_bert_config.json", max_seq_length=length)
    change(folder / "tokenizer_config.json", model_max_length=length)
    model = DualEncoder.from_preset(folder)
    assert model.query_preprocessor.sequence_length == 512


@pytest.mark.parametrize(
    ("bert", "tokenizer", "lengths"),
    [
        ({"max_seq_length": 7}, 9, (7, 7)),
        ({"max_seq_length": None}, 9, (9, 9)),
        ({"tokenizer_args": {"model_max_length": 5}}, 9, (5, 5)),
        ({"processor_kwargs": {"model_max_length": 5}}, 9, (5, 5)),
        ({"query_length": 3, "document_length": 4}, 9, (3, 4)),
        ({"query_length": 3, "max_seq_length": None}, 9, (3, 9)),
    ],
)
def test_the_length_that_comes_first_in_sentence_transformers_counts(
    make_folder, bert, tokenizer, lengths
):
    folder = make_folder(max_seq_length=8)
    change(folder / "sentence_bert_config.json", **bert)
    change(folder / "tokenizer_config.json", model_max_length=tokenizer)
    model = DualEncoder.from_preset(folder)
    sides = (model.query_preprocessor, model.document_preprocessor)
    assert tuple(side.sequence_length for side in sides) == lengths


@pytest.mark.parametrize("length", [0, -1, "512", True, 1.5], ids=repr)
def test_a_length_that_is_none_is_refused(folder, length):
    change(folder / "sentence_bert_config.json", max_seq_length=length)
    with pytest.raises(CorruptFileError, match="max_seq_length"):
        DualEncoder.from_preset(folder)


def test_lengths_and_prefixes_can_be_chosen(make_folder):
    folder = make_folder(prompts={"query": "ask: ", "document": "read: "})
    model = DualEncoder.from_preset(folder, query_length=9, query_prefix="")
    assert model.query_preprocessor.sequence_length == 9
    assert model.query_preprocessor.prefix == ""
    assert model.document_preprocessor.prefix == "read: "


@pytest.mark.parametrize(
    ("prompts", "default", "prefixes"),
    [
        ({"query": "q: ", "document": "d: "}, None, ("q: ", "d: ")),
        ({"query": "q: ", "document": None}, None, ("q: ", "")),
        # A folder without "document" gets an empty one, before these come.
        ({"query": "q: ", "passage": "p: "}, None, ("q: ", "")),
        ({"corpus": "c: "}, None, ("", "")),
        ({"sts": "s: "}, "sts", ("", "")),
        ({}, None, ("", "")),
    ],
)
def test_prompts_are_those_of_encode_query_and_encode_document(
    folder, prompts, default, prefixes
):
    change(
        folder / "config_sentence_transformers.json",
        prompts=prompts,
        default_prompt_name=default,
    )
    model = DualEncoder.from_preset(folder)
    sides = (model.query_preprocessor, model.document_preprocessor)
    assert tuple(side.prefix for side in sides) == prefixes


@pytest.mark.parametrize("prompts", [["a"], {"query": 1}], ids=repr)
def test_malformed_prompts_are_refused(folder, prompts):
    change(folder / "config_sentence_transformers.json", prompts=prompts)
    with pytest.raises(CorruptFileError, match="names to texts"):
        DualEncoder.from_preset(folder)


def test_cut_embeddings_are_refused(folder):
    change(folder / "config_sentence_transformers.json", truncate_dim=4)
    with pytest.raises(MismatchError, match="truncate_dim=4"):
        DualEncoder.from_preset(folder)


def test_the_dense_module_fixes_the_width(folder):
    assert DualEncoder.from_preset(folder).dim == 12
    with pytest.raises(MismatchError, match="projection_dim=12"):
        DualEncoder.from_preset(folder, projection_dim=768)


def test_without_a_dense_module_the_width_is_the_encoders(make_folder):
    model = DualEncoder.from_preset(make_folder())
    assert model.query_tower.projection is None
    assert model.dim == model.query_tower.encoder.hidden_dim


def test_bias_and_activation_are_taken_over(make_folder):
    folder = make_folder(dense="bias", activation=TANH)
    projection = DualEncoder.from_preset(folder).query_tower.projection
    stored = load_file(folder / "2_Dense" / "model.safetensors")
    np.testing.assert_array_equal(
        projection.bias.numpy(), stored["linear.bias"]
    )
    assert projection.get_config()["activation"] == "tanh"


def test_unit_length_can_be_asked_for(make_folder):
    folder = make_folder(normalize=False)
    assert not DualEncoder.from_preset(folder).query_tower.normalize
    model = DualEncoder.from_preset(folder, normalize=True)
    lengths = np.linalg.norm(model.encode_queries(["a cat"]), axis=-1)
    np.testing.assert_allclose(lengths, [1], rtol=1e-6)


@pytest.mark.parametrize(
    ("shared_dense", "architecture"), [(False, "ade"), (True, "ade-spl")]
)
def test_a_router_has_an_architecture_of_its_own(
    make_folder, shared_dense, architecture
):
    folder = make_folder(
        dense="bare", document_seed=5, shared_dense=shared_dense
    )
    assert DualEncoder.from_preset(folder).architecture == architecture
    with pytest.raises(MismatchError, match=f"architecture='{architecture}'"):
        DualEncoder.from_preset(folder, architecture="sde")


def test_towers_of_two_widths_are_refused(make_folder):
    folder = make_folder(dense="bare", document_seed=5)
    change(folder / "document_2_Dense" / "config.json", bias=True)
    with pytest.raises(MismatchError, match="other Dense modules"):
        DualEncoder.from_preset(folder)


def test_two_tables_cannot_be_one_embedder(make_folder):
    folder = make_folder(document_seed=5)
    change(folder / "tf_samtone.json", architecture="ade-ste")
    with pytest.raises(MismatchError, match="one token embedder"):
        DualEncoder.from_preset(folder)


def test_other_routes_are_refused(make_folder):
    folder = make_folder(document_seed=5)
    path = folder / "router_config.json"
    routes = json.loads(path.read_text())["structure"]
    change(path, structure={"query": routes["query"], "image": []})
    with pytest.raises(MismatchError, match="'image'"):
        DualEncoder.from_preset(folder)


def test_routes_by_modality_are_refused(make_folder):
    folder = make_folder(document_seed=5)
    mappings = {"('query', 'text')": "document"}
    change(
        folder / "router_config.json",
        parameters={"default_route": None, "route_mappings": mappings},
    )
    with pytest.raises(MismatchError, match="route_mappings="):
        DualEncoder.from_preset(folder)


def test_equal_routes_are_one_tower(make_folder):
    folder = make_folder(dense="bare", document_seed=5)
    path = folder / "router_config.json"
    routes = json.loads(path.read_text())["structure"]
    change(path, structure=dict.fromkeys(routes, routes["query"]))
    model = DualEncoder.from_preset(folder)
    assert model.architecture == "sde"
    np.testing.assert_array_equal(
        model.encode_queries(["a cat"]), model.encode_documents(["a cat"])
    )


def test_a_link_out_of_the_folder_is_refused(folder, tmp_path):
    other = tmp_path / "other"
    shutil.move(folder / "2_Dense", other)
    (folder / "2_Dense").symlink_to(other)
    with pytest.raises(CorruptFileError, match="Expected paths below"):
        DualEncoder.from_preset(folder)


@pytest.mark.parametrize("path", ["../other", "/etc", "a/../../b", "a\0b"])
def test_a_module_outside_of_the_folder_is_refused(folder, path):
    modules(folder, lambda m: [{**m[0], "path": path}, *m[1:]])
    with pytest.raises(CorruptFileError, match="Expected paths below"):
        DualEncoder.from_preset(folder)


@pytest.mark.parametrize(
    "change_list",
    [
        lambda m: m[:1],
        lambda m: [m[1], m[0], *m[2:]],
        lambda m: [*m[:3], m[2], m[3]],
        lambda m: [*m[:2], m[3], m[2]],
        lambda m: [{**m[0], "type": "models.CLIPModel"}, *m[1:]],
    ],
    ids=["no pooling", "order", "two denses", "norm first", "unknown"],
)
def test_other_modules_are_refused(folder, change_list):
    modules(folder, change_list)
    with pytest.raises(MismatchError, match="Expected the modules Transf"):
        DualEncoder.from_preset(folder)


@pytest.mark.parametrize("content", [{}, [1], [{"path": ""}]], ids=repr)
def test_a_malformed_list_of_modules_is_refused(folder, content):
    modules(folder, lambda _: content)
    with pytest.raises(CorruptFileError, match="Expected a list of modules"):
        DualEncoder.from_preset(folder)


@pytest.mark.parametrize(
    "changes",
    [
        {"pooling_mode_cls_token": True},
        {"pooling_mode_mean_tokens": False, "pooling_mode_max_tokens": True},
        {"pooling_mode": "lasttoken"},
    ],
    ids=["cls too", "max", "last"],
)
def test_another_pooling_is_refused(folder, changes):
    change(folder / "1_Pooling" / "config.json", **changes)
    with pytest.raises(MismatchError, match="Expected the mean over tokens"):
        DualEncoder.from_preset(folder)


def test_a_prompt_that_is_not_pooled_is_refused(make_folder):
    folder = make_folder(prompts={"query": "ask: ", "document": ""})
    change(folder / "1_Pooling" / "config.json", include_prompt=False)
    with pytest.raises(MismatchError, match="include_prompt=false"):
        DualEncoder.from_preset(folder)


def test_another_activation_is_refused(make_folder):
    folder = make_folder(dense="bare", activation="torch.nn.modules.SiLU")
    with pytest.raises(MismatchError, match="SiLU"):
        DualEncoder.from_preset(folder)


@pytest.mark.parametrize(
    "changes",
    [
        {"use_residual": True},
        {"module_input_name": "token_embeddings"},
        {"module_output_name": "token_embeddings"},
        {"activation_function": "mine.torch.nn.Tanh"},
        {"activation_function": None},
    ],
    ids=str,
)
def test_another_dense_module_is_refused(folder, changes):
    change(folder / "2_Dense" / "config.json", **changes)
    with pytest.raises(MismatchError, match=next(iter(changes))):
        DualEncoder.from_preset(folder)


def test_a_dense_module_has_a_bias_and_tanh_unless_it_says_otherwise(
    make_folder,
):
    folder = make_folder(dense="bias", activation=TANH)
    path = folder / "2_Dense" / "config.json"
    sizes = ("in_features", "out_features")
    config = json.loads(path.read_text())
    path.write_text(json.dumps({name: config[name] for name in sizes}))
    projection = DualEncoder.from_preset(folder).query_tower.projection
    assert projection.use_bias
    assert projection.get_config()["activation"] == "tanh"


def test_a_normalize_module_of_tokens_is_refused(folder):
    path = folder / "3_Normalize" / "config.json"
    change(path, module_input_name="token_embeddings")
    with pytest.raises(MismatchError, match="module_input_name="):
        DualEncoder.from_preset(folder)


@pytest.mark.parametrize(
    "changes",
    [
        {"do_lower_case": True},
        {"query_expansion": {"strategy": "fixed", "length": 32}},
        {"module_output_name": "other"},
        {"transformer_task": "fill-mask"},
        {"processing_kwargs": {"text": {"padding": "max_length"}}},
    ],
    ids=lambda changes: next(iter(changes)),
)
def test_another_treatment_of_texts_is_refused(folder, changes):
    change(folder / "sentence_bert_config.json", **changes)
    with pytest.raises(MismatchError, match=next(iter(changes))):
        DualEncoder.from_preset(folder)


def test_another_model_type_is_refused(folder):
    change(folder / "config.json", model_type="bert")
    with pytest.raises(MismatchError, match="model_type='bert'"):
        DualEncoder.from_preset(folder)


def test_a_dense_module_of_another_width_is_refused(folder):
    change(folder / "2_Dense" / "config.json", in_features=5)
    with pytest.raises(MismatchError, match="in_features=5"):
        DualEncoder.from_preset(folder)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({WO: None}, rf"missing=\['{WO}'\]"),
        ({"extra": np.ones(1, np.float32)}, r"surplus=\['extra'\]"),
        ({WO: np.ones([2, 3], np.float32)}, rf"{WO} of shape .*\(2, 3\)"),
    ],
    ids=["missing", "surplus", "shape"],
)
def test_tensors_that_do_not_fit_are_named(folder, changes, message):
    change_tensors(folder / "model.safetensors", **changes)
    with pytest.raises(MismatchError, match=message):
        DualEncoder.from_preset(folder)


@pytest.mark.parametrize(
    "changes",
    [
        {"linear.bias": np.ones(12, np.float32)},
        {"linear.weight": np.ones([3, 12], np.float32)},
    ],
    ids=["surplus", "shape"],
)
def test_a_dense_module_that_does_not_fit_is_refused(folder, changes):
    change_tensors(folder / "2_Dense" / "model.safetensors", **changes)
    with pytest.raises(MismatchError, match=r"linear\.weight"):
        DualEncoder.from_preset(folder)


def test_truncated_weights_are_refused(folder):
    path = folder / "2_Dense" / "model.safetensors"
    path.write_bytes(path.read_bytes()[:-3])
    with pytest.raises(CorruptFileError, match="2_Dense"):
        DualEncoder.from_preset(folder)


def test_a_folder_without_a_vocabulary_is_refused(folder):
    (folder / "spiece.model").unlink()
    with pytest.raises(InvalidInputError, match=r"spiece\.model"):
        DualEncoder.from_preset(folder)


def test_a_vocabulary_larger_than_the_table_is_refused(folder):
    change(folder / "config.json", vocab_size=8)
    with pytest.raises(InvalidInputError, match="vocabulary_size=8"):
        DualEncoder.from_preset(folder)


def test_pickled_weights_are_refused(folder):
    shutil.move(
        folder / "2_Dense" / "model.safetensors",
        folder / "2_Dense" / "pytorch_model.bin",
    )
    with pytest.raises(InvalidInputError, match="`pickled_files`"):
        DualEncoder.from_preset(folder)


def test_pickled_weights_that_are_named_need_torch(folder, monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    shutil.move(
        folder / "2_Dense" / "model.safetensors",
        folder / "2_Dense" / "pytorch_model.bin",
    )
    with pytest.raises(MissingDependencyError, match=r"tf-samtone\[bench\]"):
        DualEncoder.from_preset(
            folder, pickled_files=["2_Dense/pytorch_model.bin"]
        )
