"""The bundled policy packs."""

from chimera.plugins.packs.delegate_spawner import DelegateSpawnerPlugin
from chimera.plugins.packs.plan_gate import PlanGatePlugin
from chimera.plugins.packs.redactor import RedactorPlugin

__all__ = ["DelegateSpawnerPlugin", "PlanGatePlugin", "RedactorPlugin"]
