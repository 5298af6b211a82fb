"""Facts about arms: the summary's, or the settings' of their runs; never their names'."""

from __future__ import annotations

import pytest

from halfscope.results.arms import Arm, read_arms

FP32 = {"model": "cnn", "activation_gradient": "fp32", "loss_scale": "none", "loss_weight": 1.0}
FP16 = {"model": "cnn", "activation_gradient": "fp16", "loss_scale": "1024", "loss_weight": 1.0}


def arms(configs: dict[str, dict], **facts: dict) -> dict[str, Arm]:
    """Arms with these settings; facts: what the summary says of them."""
    bare = {"seeds": 1, "mean": 1.0, "low": None, "high": None, "diverged": 0, "values": [1.0], "lost_updates": None}
    lines = [{"arm": name, **bare, **facts.get(name, {})} for name in configs]
    return {arm.name: arm for arm in read_arms({"arms": lines}, configs)}


def test_the_summary_says_what_an_arm_is() -> None:
    facts = {"baseline": "two", "loss_scale": "dynamic", "loss_weight": 0.25, "in_fp32": True, "as_good": True}
    one = arms({"one": FP16, "two": FP32}, one=facts)["one"]
    assert {key: getattr(one, key) for key in facts} == facts
    assert one.static_scale is None


def test_a_baseline_of_null_is_no_missing_one() -> None:
    configs = {"one": FP16, "two": FP32}
    assert arms(configs)["one"].baseline == "two"
    assert arms(configs, one={"baseline": None})["one"].baseline is None


def test_earlier_summaries_leave_it_to_the_settings_and_never_to_the_name() -> None:
    found = arms({"fp16_s8": FP32, "fp32": FP16 | {"loss_scale": "64"}})
    assert [arm.in_fp32 for arm in found.values()] == [True, False]
    assert [arm.static_scale for arm in found.values()] == [1.0, 64.0]
    assert [arm.baseline for arm in found.values()] == [None, "fp16_s8"]
    assert [arm.as_good for arm in found.values()] == [None, None]


@pytest.mark.parametrize(("policy", "in_fp32"), [("fp32", True), ("fp16_mixed", False), (None, False)])
def test_where_the_format_of_the_gradients_is_missing_the_policy_says_it(policy: str | None, in_fp32: bool) -> None:
    config = {} if policy is None else {"policy": policy}
    assert arms({"fp32": config})["fp32"].in_fp32 is in_fp32


def test_the_baseline_is_of_the_same_model_and_weight_else_the_models_first() -> None:
    gru = {"model": "gru"}
    found = arms({
        "whole": FP32, "small": FP32 | {"loss_weight": 0.5}, "gru": FP32 | gru,
        "a": FP16 | {"loss_weight": 0.5}, "b": FP16 | {"loss_weight": 0.25}, "c": FP16 | gru,
        "d": FP16 | {"model": "x"},
    })  # fmt: skip
    assert [found[name].baseline for name in "abcd"] == ["small", "whole", "gru", None]


def test_an_arm_without_a_run_has_the_summarys_word_alone() -> None:
    line = {"arm": "one", "seeds": 0, "mean": None, "low": None, "high": None, "diverged": 0, "values": [],
            "lost_updates": None}  # fmt: skip
    (one,) = read_arms({"arms": [line]}, {})
    assert (one.baseline, one.loss_scale, one.loss_weight, one.in_fp32) == (None, "none", 1.0, False)
