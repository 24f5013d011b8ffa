"""Everything that Chimera raises on purpose.

ChimeraError
|-- MisuseError                     the calling program is wrong; mend the program
|   |-- ConfigError                 a configuration file or option is wrong
|   `-- PluginError                 a plugin cannot be loaded, swapped or unloaded
|-- OutsideError                    the world did not play along; mend the environment or try again
|   |-- MissingExtraError           an optional dependency is not installed
|   |-- ToolError                   a tool cannot do what it was asked; the text goes to the model
|   `-- ProviderError               a model's service failed
|       |-- ProviderAuthError       the key was refused
|       |-- ProviderBusyError       rate limited or overloaded
|       |-- ProviderConnectionError it cannot be reached, or the connection broke
|       |-- ProviderProtocolError   it answered with something that is not its protocol
|       `-- ContextOverflowError    the conversation is longer than the model can take
`-- RunStopped                      control flow: a run ends early, on purpose
    |-- ProviderCallBlocked         a pre-provider seam said no
    |-- PromptBlocked               a hook refused what the user said
    |-- BlockedStepsLimit           every call was blocked, step after step
    `-- RunCancelled                somebody cancelled the run
"""

from __future__ import annotations

__all__ = [
    "BlockedStepsLimit",
    "ChimeraError",
    "ConfigError",
    "ContextOverflowError",
    "MissingExtraError",
    "MisuseError",
    "OutsideError",
    "PluginError",
    "PromptBlocked",
    "ProviderAuthError",
    "ProviderBusyError",
    "ProviderCallBlocked",
    "ProviderConnectionError",
    "ProviderError",
    "ProviderProtocolError",
    "RunCancelled",
    "RunStopped",
    "ToolError",
]


class ChimeraError(Exception):
    """The root of the family."""


class MisuseError(ChimeraError):
    """The calling program is wrong."""


class ConfigError(MisuseError):
    """A configuration file or option is wrong; the text names the place and the nearest valid thing."""


class PluginError(MisuseError):
    """A plugin cannot be loaded, swapped or unloaded; whatever was in force before still is."""


class OutsideError(ChimeraError):
    """The world outside the program did not play along."""


class MissingExtraError(OutsideError):
    """An optional dependency is not installed; the text says which command installs it."""

    def __init__(self, what: str, extra: str) -> None:
        super().__init__(f"{what} needs an optional dependency: pip install 'chimera-harness[{extra}]'")
        self.extra = extra


class ToolError(OutsideError):
    """A tool cannot do what it was asked. A tool may raise it; the text becomes the error of its result."""


class ProviderError(OutsideError):
    """A model's service failed."""


class ProviderAuthError(ProviderError):
    """The service refused the key."""


class ProviderBusyError(ProviderError):
    """The service is rate limited or overloaded, and stayed so over all retries."""


class ProviderConnectionError(ProviderError):
    """The service cannot be reached, or the connection broke, and stayed so over all retries."""


class ProviderProtocolError(ProviderError):
    """The service answered with something that is not its protocol."""


class ContextOverflowError(ProviderError):
    """The conversation is longer than the model can take."""


class RunStopped(ChimeraError):
    """A run ends early, on purpose. `str()` is the text for the user; `kind` starts the run's reason."""

    kind = "stopped"

    @property
    def reason(self) -> str:
        """The machine-readable reason of the run."""
        return f"{self.kind}: {self}"


class ProviderCallBlocked(RunStopped):
    """An interceptor on a pre-provider seam blocked the call; nothing was sent."""

    kind = "interceptor_blocked"

    def __init__(self, cause: str, seam: str) -> None:
        super().__init__(f"Blocked by interceptor: {cause}")
        self.cause, self.seam = cause, seam

    @property
    def reason(self) -> str:
        return f"{self.kind}: {self.cause}"


class PromptBlocked(RunStopped):
    """A hook refused what the user said; it did not enter the conversation."""

    kind = "prompt_blocked"

    def __init__(self, cause: str) -> None:
        super().__init__(f"Blocked by hook: {cause}")
        self.cause = cause


class BlockedStepsLimit(RunStopped):
    """Every tool call was blocked for too many steps in a row."""

    kind = "blocked_steps_limit"


class RunCancelled(RunStopped):
    """Somebody cancelled the run."""

    kind = "aborted"

    def __init__(self, text: str = "the run was cancelled") -> None:
        super().__init__(text)

    @property
    def reason(self) -> str:
        return self.kind
