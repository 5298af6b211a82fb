"""The record of halfscope.torch: all that it says and computes of the tests' models, in one JSON file.

Its modules import tables of the tests by the names of their files.
"""

from torch_record.sources import add_test_folders

add_test_folders()
