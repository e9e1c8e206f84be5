"""Judges every op of a PyTorch training step in float64, within bounds of rounding."""
from keel_judge.dump import prepared
from keel_judge.judge import Options, judge
from keel_judge.report import Finding, Report

__all__ = ["Finding", "Options", "Report", "judge", "prepared"]
