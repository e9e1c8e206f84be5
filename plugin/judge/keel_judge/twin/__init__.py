"""Compiled regions, judged by the graph that was compiled (regions.py)."""
from keel_judge.twin.regions import CompilingJudge

__all__ = ["CompilingJudge"]
