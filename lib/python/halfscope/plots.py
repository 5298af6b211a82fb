"""The old name of `halfscope.plotting`, for one release."""

import sys
import warnings

from halfscope import plotting

warnings.warn("halfscope.plots is now halfscope.plotting", DeprecationWarning, stacklevel=2)
sys.modules[__name__] = plotting
