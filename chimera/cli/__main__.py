"""`python -m chimera.cli` is `chimera`."""

from chimera.cli.main import main

main()
