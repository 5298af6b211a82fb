"""Recorded results, as this source tree keeps them under experiments/recorded: copied, read, shown in docs/.

For the tools and the notebooks of the tree; no part of the installed package.
"""
