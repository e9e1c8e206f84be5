"""Judges every op of a PyTorch training step in float64, within bounds of rounding."""
from keel_judge.acid_test import acid
from keel_judge.acid_test.adapters import Adapter
from keel_judge.declared import declare
from keel_judge.dump import prepared
from keel_judge.judge import Options, judge
from keel_judge.norms import identify
from keel_judge.report import Finding, Report
from keel_judge.traces import against, record

__all__ = ["Adapter", "Finding", "Options", "Report", "acid", "against", "declare",
           "identify", "judge", "prepared", "record"]
