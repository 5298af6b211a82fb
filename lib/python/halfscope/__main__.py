"""`python -m halfscope`: the program of that name."""

from halfscope.program import main

main()
