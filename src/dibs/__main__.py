"""`python -m dibs`."""

import sys

from dibs.interfaces.cli.main import main

sys.exit(main())
