"""The explorer as a widget of Jupyter, VS Code and Colab; needs the package anywidget."""

from __future__ import annotations

import anywidget
import traitlets

from halfscope import _core


class ExplorerWidget(anywidget.AnyWidget):
    """Draws the explorer's data; `data` is their JSON."""

    _esm = _core.explorer_script()
    _css = _core.explorer_style()
    data = traitlets.Unicode().tag(sync=True)
