"""`python -m optdyn` is the same as the command `optdyn`."""

from optdyn.cli import main

main()
