"""The table of PyTorch's operations as `python -m halfscope.torch.operations` prints it."""

from __future__ import annotations

import pytest

pytest.importorskip("torch", reason="PyTorch is not installed")
from halfscope.torch.operations.__main__ import main
from halfscope.torch.operations.table import TABLE, Group, Kind, Trait, named, parsed, table_of

pytestmark = pytest.mark.torch


def test_every_operation_has_a_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == sorted(TABLE)


def test_words_choose_the_names_that_have_one_of_them(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["rnn", "nansum"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == ["_cudnn_rnn", "mkldnn_rnn_layer", "nansum"]
    assert lines[0].endswith(
        "an error in strict emulation: cuDNN's recurrent layer; set torch.backends.cudnn.enabled = False"
    )
    assert "sums of terms" in lines[2]


def test_a_word_of_no_name_is_an_error(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["softmaxx"]) == 2
    assert "softmaxx" in capsys.readouterr().err


# Names of each group, as rules had them before the table did; products and norms are told by kind and name.
GROUPS = {
    "softmaxes": "_softmax _safe_softmax _masked_softmax logsumexp logcumsumexp",
    "sums": "sum mean nansum cumsum var std var_mean std_mean norm linalg_vector_norm trace prod cumprod dist",
    "powers": "pow sqrt rsqrt reciprocal",
    "exponentials": "exp exp2 expm1 log log2 log10 log1p logaddexp logaddexp2 xlogy",
    "angles": "sin cos tan atan atan2 asin acos sinh cosh asinh acosh atanh polar angle",
    "activations": "sigmoid tanh gelu silu mish elu celu leaky_relu softplus log_sigmoid_forward hardswish hardsigmoid "
    "prelu _prelu_kernel glu erf erfc",
    "additions": "add sub rsub lerp index_add scatter_add",
    "multiplications": "mul div addcmul addcdiv",
    "masks": "where masked_fill fill index_fill clamp clamp_min clamp_max constant_pad_nd nan_to_num",
}
FACTORS = {0: "mm bmm mv dot vdot", 1: "addmm baddbmm addmv addbmm addr"}
AUTOCAST = """
    exp expm1 log log10 log2 log1p reciprocal rsqrt pow softplus prod cumsum cumprod norm linalg_vector_norm sum erfinv
    acos asin cosh sinh tan logsumexp dist
"""
# Names of each trait, as the modules that ask for it had them.
TRAITS = {
    Trait.SUM: "sum mean nansum cumsum logsumexp norm linalg_vector_norm",
    Trait.SUM_OF_PRODUCTS: "mm bmm addmm baddbmm convolution mv dot addmv addbmm",
    Trait.ADDITION: "add sub rsub",
    Trait.CONSTANT: "masked_fill where fill full index_fill",
    Trait.LOGARITHM: "log log2 log10 logit",
    Trait.EXPONENTIAL: "exp exp2 expm1 sinh cosh",
    Trait.DIVIDES: "div reciprocal rsqrt addcdiv",
    Trait.QUOTIENT: "div addcdiv",
    Trait.ROOT: "sqrt rsqrt",
    Trait.NORM: "norm linalg_vector_norm",
    Trait.NORMALISES: "sqrt rsqrt pow reciprocal div",
    Trait.STEEP_AT_ZERO: "sqrt pow norm linalg_vector_norm",
    Trait.SOFTMAX: "_softmax _safe_softmax _log_softmax",
    Trait.DROPS_MASK: "_softmax _safe_softmax",
    Trait.SCORES: "bmm mm baddbmm",
    Trait.LOGITS: "addmm mm bmm",
    Trait.DIFFERENCE: "add sub rsub addcmul addcdiv lerp",
    Trait.RUNNING_TOTAL: "add sub lerp",
    Trait.ANGLE: "sin cos tan",
    Trait.BY_TERMS: "sum mean mul embedding_dense_backward index_put _index_put_impl _unsafe_index_put index_add "
    "scatter_add",
    Trait.COPIES: "_to_copy clone",
    Trait.OF_VECTORS: "dot vdot addr",
}
# Rows of later operations have columns of their own choice.
LISTED = {name for names in [*GROUPS.values(), *FACTORS.values(), AUTOCAST, *TRAITS.values()] for name in names.split()}


@pytest.mark.parametrize("trait", TRAITS, ids=lambda trait: trait.name)
def test_a_trait_has_the_operations_that_the_list_of_its_question_had(trait: Trait) -> None:
    assert named(trait) & LISTED == set(TRAITS[trait].split())


def test_a_name_of_several_traits_has_one_of_them() -> None:
    both = named(Trait.DIVIDES, Trait.LOGARITHM)
    assert both == named(Trait.DIVIDES) | named(Trait.LOGARITHM)
    assert not named()


@pytest.mark.parametrize("group", GROUPS)
def test_a_group_has_the_operations_that_rules_name_by_it(group: str) -> None:
    assert {name for name in LISTED if TABLE[name].group.value == group} == set(GROUPS[group].split())


def test_products_and_norms_are_groups_by_their_arithmetic() -> None:
    for name, row in TABLE.items():
        assert (row.group is Group.PRODUCTS) == (row.kind in (Kind.PRODUCT, Kind.ATTENTION)), name
        assert (row.group is Group.NORMS) == ("_norm" in name and bool(row.typed)), name


def test_columns_are_what_other_lists_had() -> None:
    for first, names in FACTORS.items():
        assert {name for name in LISTED if TABLE[name].first == first} == set(names.split())
    assert {name for name in LISTED if TABLE[name].autocast} == set(AUTOCAST.split())
    called = {name: TABLE[name].called for name in LISTED if TABLE[name].called}
    assert called == {"_to_copy": "to", "_safe_softmax": "softmax"}
    nan = {"_softmax": "inf - inf", "_safe_softmax": "inf - inf", "mul": "0 * inf", "div": "inf / inf"}
    assert {name: TABLE[name].nan for name in LISTED if TABLE[name].nan} == nan


@pytest.mark.parametrize("text, message", [
    ("[rounded]\nexpm2: autocat=fp32", "line 2: no column 'autocat=fp32'; one of untouched, view"),
    ("[rounded expnentials]\nexpm2", "line 1: no column 'expnentials'"),
    ("expm2: autocast=fp32", "line 1: .*'kind'"),
    ("[rounded]\nexpm2: kept=first", "line 2: invalid literal"),
    ('[refused]\nexpm2: reason="an unended one', "line 2: No closing quotation"),
    ("[rounded]\nexpm2\n# a comment\nexpm3 expm2", "expm2 has two rows"),
])  # fmt: skip
def test_a_row_that_is_none_gets_one_line(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=message) as refused:
        table_of(parsed(text))
    assert "\n" not in str(refused.value)
