"""Colours and dashes of arms: told apart, the same everywhere, and saying what belongs together."""

from __future__ import annotations

import pytest
from matplotlib.colors import to_hex

from halfscope.plotting.style import (
    arm_style,
    arms_by_scale,
    legend_beside,
    line_style,
    new_figure,
    power_of_two,
    scale_colours,
)
from halfscope.results.arms import Arm
from synthetic_scales import DETECTION, SWEEP, ScaleArm


def arm(name: str, loss_scale: str = "none", baseline: str | None = None) -> Arm:
    """An arm with these facts, in FP32 where it has no loss scale."""
    return Arm(
        name=name, seeds=1, mean=1.0, low=None, high=None, diverged=0, values=(1.0,), lost_updates=None,
        baseline=baseline, loss_scale=loss_scale, in_fp32=loss_scale == "none",
    )  # fmt: skip


def scaled(arms: tuple[ScaleArm, ...]) -> list[Arm]:
    return [arm(one.name, one.scale) for one in arms]


def paired(*tasks: str) -> list[Arm]:
    """An FP32 arm and one that is compared with it for each task; their names say nothing of it."""
    return [made for task in tasks for made in (arm(f"{task}, first"), arm(f"{task}, second", "1", f"{task}, first"))]


DOSES, TASKS = paired("x1", "x16", "x64", "x256"), paired("cnn", "gru", "mlp", "transformer", "detector")


@pytest.mark.parametrize("arms", [scaled(DETECTION), scaled(SWEEP), DOSES, TASKS])
def test_no_two_arms_look_alike(arms: list[Arm]) -> None:
    styles = [arm_style(arms, one.name) for one in arms]
    assert len({(to_hex(style["color"]), str(style["linestyle"])) for style in styles}) == len(arms)


@pytest.mark.parametrize("arms", [DOSES, TASKS])
def test_partners_share_a_colour_and_the_baseline_is_solid(arms: list[Arm]) -> None:
    styles = [arm_style(arms, one.name) for one in arms]
    for one, two in zip(styles[::2], styles[1::2]):
        assert one["color"] == two["color"] and one["linestyle"] == "-" != two["linestyle"]
    assert len({style["color"] for style in styles}) == len(arms) // 2


def test_partners_need_not_be_fp32_and_fp16() -> None:
    arms = [arm(f"{task}_{sums}", "8", f"{task}_wide" if sums == "narrow" else None)
            for task in ("a", "b") for sums in ("wide", "narrow")]  # fmt: skip
    assert [arm_style(arms, one.name)["linestyle"] == "-" for one in arms] == [True, False, True, False]


def test_arms_without_a_partner_keep_the_palette() -> None:
    arms = [*DOSES, arm("x4", "dynamic", "x1, first")]
    assert [arm_style(arms, one.name) for one in arms] == list(map(line_style, range(len(arms))))


def test_few_arms_keep_the_palette() -> None:
    assert scale_colours(scaled(DETECTION)) is None
    assert scale_colours(scaled(SWEEP)) is not None


def test_the_scale_of_an_arm_is_its_setting_and_a_second_arm_at_it_stands_beside() -> None:
    arms = [arm("fp16_s8"), arm("one", "8"), arm("two", "8"), arm("three", "0.5"), arm("four", "dynamic")]
    assert arms_by_scale(arms) == {"one": 8.0, "three": 0.5}
    assert "fp16_s262144_skip" not in arms_by_scale(scaled(SWEEP))


@pytest.mark.parametrize(
    ("scale", "label"), [(1, "1"), (8, "8"), (1000, "1000"), (65536, "65536"), (2**24, "2²⁴"), (0.25, "2⁻²")]
)
def test_power_of_two(scale: float, label: str) -> None:
    assert power_of_two(scale) == label


@pytest.mark.parametrize("arms", [3, 40])
def test_a_figure_holds_its_whole_legend(arms: int) -> None:
    figure = new_figure()
    axes = figure.subplots()
    for arm in range(arms):
        axes.plot([0, 1], label=f"arm {arm}" + ("\ndiverged at step 3" if arm % 4 == 0 else ""))
    legend_beside(figure)
    figure.draw_without_rendering()
    box = figure.legends[0].get_window_extent()
    assert box.y0 >= 0 and box.y1 <= figure.bbox.height
    assert (figure.get_figheight() > 3.6) == (arms > 10)
