"""`sensitivity`: its report, tensors that are not finite, what is not scored, and arguments that are refused."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed")
from torch import nn

from halfscope.torch import sensitivity
from json_schema import faults
from scored_networks import Transformer, tokens, two_layers

pytestmark = [pytest.mark.torch, pytest.mark.usefixtures("one_thread")]

Tensor = torch.Tensor


def test_the_report_says_which_units_cost_most() -> None:
    torch.manual_seed(0)
    found = sensitivity(Transformer(blocks=1), tokens(4, 32), ["mxfp4", "mxfp8_e4m3"])
    text = str(found.report)
    assert text.startswith("Choose formats with .choose(bits=...): ") and "predicted, not tried" in text
    assert "6 units in 2 formats, 4 batches, 128 sequences, 128 terms of the loss" in " ".join(text.split())
    assert list(faults(found.report.to_dict())) == []
    assert json.loads(found.report.to_json())["report"] == "sensitivity"
    assert found._repr_html_().startswith("<pre") and found.verdict == found.report.verdict
    frame = found.to_pandas()
    assert len(frame) == 12 and frame.loc[("head", "mxfp4"), "nats"] == found.scores["head", "mxfp4"].nats
    first = found.ranked("mxfp4")[0]
    assert frame["nats"].max() == first[1].nats and first[0] in text
    assert first[1].low < first[1].nats < first[1].high and first[1].form == "sequence"


def test_few_sequences_have_the_token_form_and_fewer_no_interval() -> None:
    model, x = two_layers()
    few = sensitivity(model, [x[:50]], ["mxfp4"]).scores["one", "mxfp4"]
    assert (few.form, few.nats) == ("token", few.token)
    found = sensitivity(model, [x[:5]], ["mxfp4"])
    assert found.scores["one", "mxfp4"].low != found.scores["one", "mxfp4"].low
    assert "no interval below 8 samples" in str(found.report)


def test_scores_beyond_the_second_order_are_named() -> None:
    model, x = two_layers()
    assert "beyond the second order" not in sensitivity(model, [x], ["mxfp4"]).report.about
    with torch.no_grad():
        model.two.weight *= 8
    about = sensitivity(model, [x], ["mxfp4"]).report.about
    assert "Rough, since beyond the second order, are sizes above 0.1 nats: of one, two." in about


def test_a_format_that_overflows_is_no_candidate() -> None:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(16, 16), nn.Linear(16, 4))
    with torch.no_grad():
        model[0].weight *= 2.0**20
        model[1].weight *= 2.0**-20
    found = sensitivity(model, [torch.randn(32, 16)], ["fp16", "bf16"])
    assert set(found.scores) == {("0", "bf16"), ("1", "bf16")}
    assert found.not_finite["0", "fp16"].startswith("of '0' its weight, whose largest number is 2")
    assert found.not_finite["1", "fp16"].startswith("of '1' its input, whose largest number is ")
    report = found.report
    assert [each.kind for each in report.findings] == ["rank", "not finite", "not finite"]
    assert "Keep 0 out of fp16: not finite of '0' its weight" in str(report)
    assert found.table().splitlines()[1].split()[2] == "-"
    only = sensitivity(model, [torch.randn(32, 16)], ["fp16"])
    with pytest.raises(ValueError, match="choose: '0' is finite in none of fp16; add 'bf16' to formats="):
        only.choose(bits=16)


class Partial(nn.Module):
    """A product without a gradient, and a weight that no known product has."""

    def __init__(self) -> None:
        super().__init__()
        self.one, self.two, self.head = nn.Linear(8, 8), nn.Linear(8, 8), nn.Linear(8, 4)
        self.own, self.added = nn.Parameter(torch.randn(8, 8)), nn.Parameter(torch.randn(1, 8))

    def forward(self, x: Tensor) -> Tensor:
        with torch.no_grad():
            y = self.one(x)
        y = y + self.two(x).detach() + self.added
        return self.head(y * torch.einsum("bi,oi->bo", x, self.own))


def test_what_is_not_scored_is_named() -> None:
    torch.manual_seed(0)
    found = sensitivity(Partial(), [torch.randn(32, 8)], ["mxfp4"])
    assert found.units == ("head",)
    text = " ".join(str(found.report).split())
    assert "Not scored, since no gradient reaches them: one, two." in text
    assert text.endswith("Not scored, since their products are not known here: own.")


class Outputs(nn.Module):
    def __init__(self, wrap: Any) -> None:
        super().__init__()
        self.layer, self.wrap = nn.Linear(8, 4), wrap

    def forward(self, x: Tensor, more: Tensor | None = None) -> Any:
        return self.wrap(self.layer(x if more is None else x + more))


def test_batches_and_outputs_of_other_types() -> None:
    torch.manual_seed(0)
    model, x = Outputs(lambda z: z), torch.randn(16, 8)
    expected = sensitivity(model, [x], ["mxfp4"]).scores
    for wrap in (lambda z: {"logits": z}, lambda z: SimpleNamespace(logits=z)):
        model.wrap = wrap
        assert sensitivity(model, [{"x": x}], ["mxfp4"]).scores == expected
    model.wrap = lambda z: (z, None)
    assert sensitivity(model, [(x, None)], ["mxfp4"], call=lambda model, batch: model(*batch)[0]).scores == expected


def test_classes_along_another_axis() -> None:
    torch.manual_seed(0)
    model, x = nn.Sequential(nn.Conv2d(3, 8, 1)), torch.randn(16, 3, 4, 5)
    for loss in (nn.CrossEntropyLoss(), nn.functional.cross_entropy):
        found = sensitivity(model, [x], ["mxfp4"], loss)
        assert "320 terms of the loss" in found.report.about
    assert "2560 terms" in sensitivity(model, [x], ["mxfp4"], nn.MSELoss()).report.about


def test_terms_that_do_not_count() -> None:
    torch.manual_seed(0)
    model, batches = Transformer(blocks=1, of_tokens=True), tokens(2, 8)

    def mask(batch: Tensor) -> Tensor:
        return torch.arange(batch.shape[1]).expand(batch.shape) < 4

    found = sensitivity(model, batches, ["mxfp4"], mask=mask)
    assert "64 terms of the loss" in found.report.about
    every = sensitivity(model, batches, ["mxfp4"])
    assert found.scores["head", "mxfp4"].nats == pytest.approx(every.scores["head", "mxfp4"].nats, rel=0.5)
    with pytest.raises(ValueError, match=r"mask has the shape \(8, 11\); give \(8, 12\), as the terms"):
        sensitivity(model, batches, ["mxfp4"], mask=lambda batch: torch.ones(8, 11))


MODEL, X = nn.Linear(8, 4), torch.zeros(4, 8)
REFUSED: dict[str, tuple[tuple, dict[str, Any], type[Exception], str]] = {
    "model": ((3, [X]), {}, TypeError, "sensitivity: model=3; give a module of PyTorch"),
    "one batch": ((MODEL, X), {}, TypeError, r"batches is a tensor \(4, 8\) of torch.float32; give a list"),
    "no batch": ((MODEL, []), {}, ValueError, "sensitivity: batches has no batch; give four or more"),
    "a format": ((MODEL, [X], "nvfp4"), {}, TypeError, r"formats='nvfp4'; give a list, as \['nvfp4'"),
    "no format": ((MODEL, [X], []), {}, ValueError, r"formats=\[\]; give one or more, each once"),
    "twice": ((MODEL, [X], ["bf16", "bf16"]), {}, ValueError, "each once"),
    "unknown format": ((MODEL, [X], ["fp5"]), {}, ValueError, "^sensitivity: .*fp5"),
    "stochastic": ((MODEL, [X], ["fp16/stochastic"]), {}, ValueError, "draws random numbers; give one that is a func"),
    "delayed": ((MODEL, [X], ["fp8_e4m3+delayed"]), {}, ValueError, "has the scales of earlier steps; give one"),
    "loss": ((MODEL, [X], ["bf16"], "hinge"), {}, ValueError, "loss='hinge': labels are drawn from a distribution"),
    "function": ((MODEL, [X], ["bf16"], lambda z: z.sum()), {}, ValueError, "labels are drawn from a distribution"),
    "weighted": ((MODEL, [X], ["bf16"], nn.CrossEntropyLoss(torch.ones(4))), {}, ValueError, "labels are drawn"),
    "labels": ((MODEL, [(X, X)]), {}, TypeError, "labels are not read: give call=lambda model, batch"),
    "type of batch": ((MODEL, ["x"]), {}, TypeError, "a batch is a str; give tensors, or call="),
    "output": ((Outputs(lambda z: None), [X]), {}, TypeError, "the model returns a NoneType; give call="),
    "half": ((nn.Linear(8, 4).bfloat16(), [X.bfloat16()]), {}, TypeError, "bfloat16; give model.float"),
    "group": ((MODEL, [X]), {"groups": [["a"]]}, ValueError, "groups: no unit 'a'; the units are "),
    "detached": ((Outputs(lambda z: z.detach()), [X]), {}, ValueError, "does not depend on a product with a weight"),
    "infinite": ((MODEL, [X / 0]), {}, ValueError, "not finite in FP32"),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_arguments_that_are_refused(case: str) -> None:
    arguments, options, error, words = REFUSED[case]
    with pytest.raises(error, match=words) as raised:
        sensitivity(*arguments, **options)
    assert "\n" not in str(raised.value)


def test_inference_mode_is_refused() -> None:
    with torch.inference_mode(), pytest.raises(RuntimeError, match="call it outside of torch.inference_mode"):
        sensitivity(MODEL, [X], ["bf16"])
