"""The table of PyTorch's operations as `python -m halfscope.torch.operations` prints it."""

from __future__ import annotations

import pytest

pytest.importorskip("torch", reason="PyTorch is not installed")
from halfscope.torch.operations.__main__ import main
from halfscope.torch.operations.table import TABLE

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
