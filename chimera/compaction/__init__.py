"""Compaction: keeping a long conversation within the model's window."""

from chimera.compaction.base import CompactionStrategy, SummaryRequest
from chimera.compaction.drop_oldest import DropOldest
from chimera.compaction.summary import SUMMARY_HEADING, SummaryCompaction
from chimera.compaction.tokens import estimate_tokens

__all__ = [
    "SUMMARY_HEADING",
    "CompactionStrategy",
    "DropOldest",
    "SummaryCompaction",
    "SummaryRequest",
    "estimate_tokens",
]
