"""The old name of `halfscope.results.loss_scales`, for one release."""

import sys
import warnings

from halfscope.results import loss_scales

warnings.warn("halfscope.loss_scales is now halfscope.results.loss_scales", DeprecationWarning, stacklevel=2)
sys.modules[__name__] = loss_scales
