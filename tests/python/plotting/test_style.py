"""Colours and dashes of arms: told apart, the same everywhere, and saying what belongs together."""

from __future__ import annotations

import pytest
from matplotlib.colors import to_hex

from halfscope.plotting.style import arm_style, legend_beside, named_scale, new_figure, power_of_two, scale_colours
from synthetic_scales import DETECTION, SWEEP

DOSES = [f"{kind}_x{dose}" for dose in (1, 16, 64, 256) for kind in ("fp32", "fp16_s1")]
TASKS = [f"{task}_{kind}" for task in ("cnn", "gru", "mlp", "transformer", "detector") for kind in ("fp32", "fp16_s1")]


@pytest.mark.parametrize("arms", [[arm.name for arm in arms] for arms in (DETECTION, SWEEP)] + [DOSES, TASKS])
def test_no_two_arms_look_alike(arms: list[str]) -> None:
    looks = {(to_hex(style["color"]), str(style["linestyle"])) for arm in arms if (style := arm_style(arms, arm))}
    assert len(looks) == len(arms)


@pytest.mark.parametrize("arms", [DOSES, TASKS])
def test_partners_share_a_colour_and_fp32_is_solid(arms: list[str]) -> None:
    styles = [arm_style(arms, arm) for arm in arms]
    for one, two in zip(styles[::2], styles[1::2]):
        assert one["color"] == two["color"] and one["linestyle"] == "-" != two["linestyle"]
    assert len({style["color"] for style in styles}) == len(arms) // 2


def test_few_arms_keep_the_palette() -> None:
    assert scale_colours([arm.name for arm in DETECTION]) is None
    assert scale_colours([arm.name for arm in SWEEP]) is not None


@pytest.mark.parametrize(
    ("arm", "scale"),
    [("fp16_s0.0625", 0.0625), ("fp16_s16777216", 2.0**24), ("fp16_s262144_skip", None), ("fp16_sums", None)],
)
def test_named_scale(arm: str, scale: float | None) -> None:
    assert named_scale(arm) == scale


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
