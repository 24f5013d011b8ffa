"""Chimera: run coding agents under policy."""
