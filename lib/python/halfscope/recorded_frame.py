"""Recorded results of several devices as a data frame, for notebooks."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from halfscope.recorded import CPU, read_tables, recorded_folder


def beside(experiment: str, folder: Path | None = None) -> pd.DataFrame:
    """The recorded arms of `experiment`, a column per device with its outcome, of GPUs with speed and memory too.

    Text, as it stands in the recorded tables; empty where nothing was recorded. `folder` is experiments/recorded, or what
    HALFSCOPE_RECORDED names.
    """
    columns: dict[str, dict[str, str]] = {}
    for table in read_tables(folder or recorded_folder(), experiment):
        columns[f"{table.metric}, {table.device}"] = {arm: table.outcome(arm) for arm in table.rows}
        if table.device == CPU:
            continue
        for name in ("ms/step", "peak MiB"):
            if name in table.columns:
                columns[f"{name}, {table.device}"] = {arm: table.cell(arm, name) for arm in table.rows}
    return pd.DataFrame(columns).fillna("").rename_axis("arm")
