"""`python -m keel_judge`, the same as the command keel-judge."""
import sys

from keel_judge.command import main

if __name__ == "__main__":
    sys.exit(main())
