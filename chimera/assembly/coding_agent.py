"""CodingAgent: provider, tools, prompt, permissions and policy, put together."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from pathlib import Path
from typing import Any, Literal

from chimera.assembly.presets import get_preset, system_prompt
from chimera.assembly.turn import Turn
from chimera.core.agent_loop import AgentLoop
from chimera.core.context import Context
from chimera.core.decisions import Interceptors, merge_interceptors
from chimera.core.identity import current_run
from chimera.core.loop_config import LoopConfig, PermissionCallback
from chimera.core.loop_events import LoopEvent, LoopResult
from chimera.core.run import enclosing
from chimera.core.steering import MessageQueue
from chimera.core.tool import BaseTool
from chimera.core.truncation import Truncation
from chimera.errors import MisuseError
from chimera.events import EventBus
from chimera.permissions.base import PermissionPolicy
from chimera.plugins import PluginExtensionRegistry
from chimera.types import Message

__all__ = ["CodingAgent"]

DEFAULT_MAX_TURNS = 100


class CodingAgent:
    """An agent with everything it needs to work on a project folder.

    `model` names a model (see `chimera.providers.factory`) unless a `provider` is given. `tools_override` replaces the
    preset's tools, `extra_tools` are added; plugins of `manager` add their tools and hooks. `interceptors` are the
    host's chains: they run after the chains of loaded plugins. `loop` names a strategy loop, or one that a plugin
    registered, in place of the default one: such a lane carries the chains, and no permissions, hooks or compaction.

    Who answers what a policy asks: `permission_callback`. With a callback and no `permissions`, writes and commands
    are asked about; without either, tools run unasked: the program that built the agent decided so.

    An agent keeps nothing between runs: pass a `context` to go on with a conversation.
    """

    def __init__(
        self,
        model: str | None = None,
        project_dir: str | Path | None = None,
        preset: str = "coding_agent",
        *,
        provider: Any = None,
        permission_callback: PermissionCallback | None = None,
        tools_override: Sequence[BaseTool] | None = None,
        extra_tools: Sequence[BaseTool] | None = None,
        interceptors: Interceptors | None = None,
        loop: str | None = None,
        max_turns: int | None = None,
        permissions: PermissionPolicy | None = None,
        hooks: Any = None,
        compaction: Any | Literal["default"] = "default",
        event_bus: EventBus | None = None,
        base_url: str | None = None,
        api_key: str | None = None,
        manager: Any = None,
        system_prompt: str | None = None,
        lane: str = "",
    ) -> None:
        if interceptors is not None and not isinstance(interceptors, Interceptors):
            raise MisuseError(f"interceptors must be Interceptors, not {type(interceptors).__name__}")
        self.project_dir = _folder(project_dir)
        self.preset = get_preset(preset)
        self.provider = provider if provider is not None else _make_provider(model, base_url, api_key)
        self.model = str(getattr(self.provider, "model_name", "") or model or "")
        self.permission_callback = permission_callback
        self.permissions = permissions
        self.hooks = hooks
        self.compaction = _default_compaction() if compaction == "default" else compaction
        self.event_bus = event_bus
        self.loop = loop
        self.max_turns = max_turns or DEFAULT_MAX_TURNS
        self.lane = lane
        self.manager = manager
        self._interceptors = interceptors
        self._tools = list(self.preset.tools(self.project_dir) if tools_override is None else tools_override)
        self._tools.extend(extra_tools or ())
        self._system_prompt = system_prompt
        self._under_way = 0

    @property
    def running(self) -> bool:
        """True while a turn of this agent is under way."""
        return self._under_way > 0

    @property
    def tools(self) -> list[BaseTool]:
        """The tools that the next turn has: the agent's own, then those of loaded plugins."""
        added = list(self.manager.tools) if self.manager is not None else []
        return [*self._tools, *added]

    @property
    def root(self) -> Path:
        return self.project_dir

    def run(
        self,
        task: str,
        env: Any = None,
        *,
        context: Context | None = None,
        stream: bool = False,
        abort_signal: Any = None,
        message_queue: MessageQueue | None = None,
    ) -> Turn[LoopResult]:
        """Do `task`. Iterate over the turn for its `LoopEvent`s, or await it for its `LoopResult`.

        `context` is gone on with in place; without one the conversation is new. Started from inside another run's
        tool, the turn is held to that run's rules as well. `env` is there so that an agent can serve as a sub-agent.
        """
        events = self._events(task, context or Context(), stream, abort_signal, message_queue)
        return Turn(events, lambda result: result)

    def _effective_interceptors(self) -> Interceptors | None:
        """Merge the chains of loaded plugins with the host's; the one place where the assembled stack does.

        A sub-agent is held to the versions of plugins that its turn began with, should one be swapped meanwhile.
        """
        outer = enclosing.get() if current_run() is None else None
        held = outer.rules.chains if outer is not None else None
        return merge_interceptors(PluginExtensionRegistry.get_all_interceptors(held), self._interceptors)

    def _config(self, queue: MessageQueue | None) -> LoopConfig:
        asks = self.permission_callback is not None or self.permissions is not None
        return LoopConfig(
            permissions=self.permissions,
            interceptors=self._effective_interceptors(),
            hooks=self._hook_runners(),
            compaction=self.compaction,
            event_bus=self.event_bus,
            truncation=Truncation(),
            yolo_mode=not asks,
            permission_callback=self.permission_callback,
            message_queue=queue,
        )

    def _hook_runners(self) -> list[Any]:
        """Return the hooks of the plugins, then the agent's own."""
        brought = self.manager.components.hooks if self.manager is not None else {}
        runners = []
        if brought:
            from chimera.hooks import HookRunner

            runners.append(HookRunner(brought, cwd=self.project_dir))
        return runners if self.hooks is None else [*runners, self.hooks]

    def _prompt(self) -> str:
        return self._system_prompt or system_prompt(self.preset, self.project_dir)

    async def _events(
        self, task: str, context: Context, stream: bool, abort_signal: Any, queue: MessageQueue | None
    ) -> AsyncGenerator[LoopEvent, None]:
        prompt = Message.user(task)
        with PluginExtensionRegistry.unchanged():  # else a swap might come between the tools of a plugin and its chains
            tools, config = self.tools, self._config(queue)
        if self.loop is None:
            events = AgentLoop().run(
                (),
                tools=tools,
                provider=self.provider,
                system_prompt=self._prompt(),
                max_turns=self.max_turns,
                abort_signal=abort_signal,
                stream=stream,
                config=config,
                env=self,
                context=context,
                prompts=[prompt],
                lane=self.lane,
            )
        else:
            events = self._lane(prompt, context, stream, abort_signal, tools, config.interceptors)
        self._under_way += 1
        try:
            async for event in events:
                yield event
        finally:
            self._under_way -= 1
            await events.aclose()

    def _lane(
        self,
        prompt: Message,
        context: Context,
        stream: bool,
        abort_signal: Any,
        tools: list[BaseTool],
        interceptors: Interceptors | None,
    ) -> AsyncGenerator[LoopEvent, None]:
        """Run the loop that `loop` names. Lanes carry the merged chains and no permission checks."""
        from chimera.assembly.loop_adapter import adapt_loop

        return adapt_loop(
            str(self.loop),
            provider=self.provider,
            tools=tools,
            system_prompt=self._prompt(),
            messages=[prompt],
            env=self,
            max_steps=self.max_turns,
            abort_signal=abort_signal,
            interceptors=interceptors,
            context=context,
            lane=self.lane,
            stream=stream,
        )


def _folder(project_dir: str | Path | None) -> Path:
    folder = Path(project_dir or ".").expanduser().resolve()
    if not folder.is_dir():
        raise MisuseError(f"the project folder {str(folder)!r} does not exist")
    return folder


def _make_provider(model: str | None, base_url: str | None, api_key: str | None) -> Any:
    from chimera.providers.factory import create_provider

    return create_provider(model, base_url=base_url, api_key=api_key)


def _default_compaction() -> Any:
    from chimera.compaction import SummaryCompaction

    return SummaryCompaction()
