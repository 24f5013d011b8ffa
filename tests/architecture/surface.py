"""The names that users import, with what they rely on. Names may be added; none may be renamed or removed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

__all__ = ["PENDING", "SURFACE", "Name"]


@dataclass(frozen=True, slots=True)
class Name:
    """A public name of a module.

    `fields` are the first fields of a dataclass, in order. `takes` are the parameters of a function or constructor:
    positional ones in order, those behind `*` by keyword only; others may follow when they have defaults. `has` are
    attributes and methods, `calls` the parameters of methods.
    """

    name: str
    fields: str = ""
    takes: str = ""
    has: str = ""
    calls: Mapping[str, str] = field(default_factory=dict)


STEPS = "provider tools context env"
LOOP = {"run": STEPS, "iter_steps": STEPS, "async_iter_steps": STEPS}
REQUEST = "messages tools temperature max_tokens"
PLUGIN_HOOKS = (
    "register_tools register_loops register_providers register_skills register_commands register_hooks "
    "register_interceptors"
)
CONFIG = (
    "permissions interceptors hooks middleware compaction event_bus truncation cancellation yolo_mode "
    "secrets_redaction resumed_approvals"
)

SURFACE: dict[str, tuple[Name, ...]] = {
    "chimera": (
        Name("AgentSession", has="send steer queue_follow_up cancel clear load_history run run_async close __enter__"),
        Name("run_agent", takes="task"),
        Name("TurnResult", fields="text cost_usd steps reason duration_ms usage"),
        Name("render_event", takes="event"),
        Name("LoopEvent", fields="type data turn"),
        Name("LoopEventType"),
    ),
    "chimera.types": (
        Name("ToolCall", fields="id name arguments"),
        Name("Message", fields="role content tool_calls call_id content_blocks", has="system user assistant tool"),
        Name("ToolResult", fields="output error metadata", has="success"),
        Name("StepResult", fields="message tool_calls done step tool_results cost pending_approval"),
        Name("AgentResult", fields="output steps tool_calls_total cost success error"),
        Name("PendingApproval", fields="tool_call tool_name arguments reason", has="approve deny decided approved"),
    ),
    "chimera.providers.base": (
        Name(
            "Provider",
            has="model_name context_window supports_tool_use",
            calls=dict.fromkeys(("complete", "stream", "async_complete", "async_stream"), REQUEST),
        ),
        Name("Response", fields="content tool_calls usage"),
    ),
    "chimera.providers.faux": (Name("FauxProvider", takes="script * model on_exhausted"),),
    "chimera.core": (
        Name("Interceptors", fields="context provider_request tool_call tool_result"),
        Name("InterceptDecision"),
        Name("ProviderRequest"),
        Name("LoopConfig"),
        Name("Context"),
        Name("BaseTool"),
        Name("tool"),
        Name("ReAct"),
        Name("AgentLoop"),
        Name("LoopMiddleware"),
    ),
    "chimera.core.context": (Name("Context", takes="system", has="add messages system to_messages"),),
    "chimera.core.tool": (
        Name("BaseTool", has="name description parameters is_concurrency_safe", calls={"execute": "args env"}),
        Name("tool"),
    ),
    "chimera.core.loop": (
        Name("ReAct", takes="max_steps config", calls=LOOP),
        Name("drain_steps", takes="gen"),
        Name("async_drain_steps", takes="agen"),
    ),
    "chimera.core.loops.plan_execute": (Name("PlanAndExecute", calls=LOOP),),
    "chimera.core.loops.reflexion": (Name("Reflexion", calls=LOOP),),
    "chimera.core.loops.tree_of_thought": (Name("TreeOfThought", takes="max_steps n_candidates config", calls=LOOP),),
    "chimera.core.loops.plan_act": (
        Name("PlanActLoop", takes="plan_steps act_steps read_only_tools config", calls=LOOP),
    ),
    "chimera.core.loops.autonomous": (
        Name(
            "AutonomousLoop",
            takes="max_steps_per_task max_total_steps max_replans max_cost max_time_seconds config",
            calls=LOOP,
        ),
    ),
    "chimera.core.loops.retry": (Name("RetryLoop", takes="inner max_retries scorer success_threshold", calls=LOOP),),
    "chimera.core.loops.lint_feedback": (
        Name("LintFeedbackLoop", takes="inner linter lint_args max_lint_rounds", calls=LOOP),
    ),
    "chimera.core.loop_config": (Name("LoopConfig", fields=CONFIG),),
    "chimera.core.agent_loop": (
        Name(
            "AgentLoop",
            calls={
                "run": "messages * tools provider system_prompt max_turns interceptors permissions hooks compaction "
                "abort_signal message_queue stream"
            },
        ),
    ),
    "chimera.core.loop_events": (
        Name("LoopEvent", fields="type data turn"),
        Name("LoopResult", fields="reason messages usage cost_usd duration_ms turn_count"),
        Name(
            "LoopEventType",
            has="STREAM_START ASSISTANT_CHUNK THINKING_CHUNK ASSISTANT TOOL_USE TOOL_RESULT INTERCEPTOR "
            "COMPACT_BOUNDARY SYSTEM ERROR RESULT",
        ),
    ),
    "chimera.core.interception": (
        Name("InterceptDecision", has="allow replace block kind value reason"),
        Name("Interceptors", fields="context provider_request tool_call tool_result"),
        Name("ProviderRequest", fields="model messages tools kwargs headers"),
        Name("intercept_tool_call", takes="chain call * event_bus"),
        Name("intercept_tool_result", takes="chain call result * event_bus"),
        Name("intercept_context", takes="chain messages"),
        Name("intercept_provider_request", takes="chain request"),
        Name("intercepted_complete"),
        Name("merge_interceptors"),
        Name("current_run"),
    ),
    "chimera.events": (
        Name("EventBus", calls={"subscribe": "event_type fn", "publish": "event", "use": "middleware"}),
        Name("InterceptorEvent", has="type seam decision reason tool_name call_id interceptor"),
    ),
    "chimera.permissions.base": (
        Name("PermissionPolicy", calls={"evaluate": "tool_name args"}),
        Name("PermissionAction", has="ALLOW DENY ASK"),
    ),
    "chimera.plugins": (
        Name("BasePlugin", has=f"name activate deactivate {PLUGIN_HOOKS}"),
        Name("ComponentRegistry"),
        Name(
            "PluginManager",
            has="discover load load_plugin load_all unload reload plugins tools get_all_skills",
        ),
        Name(
            "PluginExtensionRegistry",
            has="register_interceptor unregister_interceptor get_interceptors get_all_interceptors _reset",
        ),
    ),
    "chimera.plugins.registry": (Name("INTERCEPTOR_SEAMS"),),
    "chimera.plugins.packs": (
        Name("PlanGatePlugin", takes="* gated_tools plan_tools scope", has="interceptors"),
        Name("RedactorPlugin", takes="* pattern replacement headers", has="interceptors"),
        Name("DelegateSpawnerPlugin", takes="* prefix names delegate_tool", has="interceptors"),
    ),
    "chimera.tools.delegate": (Name("DelegateTool", takes="* sub_agent", has="execute"),),
    "chimera.assembly": (
        Name(
            "CodingAgent",
            takes="model project_dir preset * provider permission_callback tools_override extra_tools interceptors "
            "loop max_turns",
            has="run _effective_interceptors",
        ),
    ),
    "chimera.assembly.driver": (
        Name(
            "AgentDriver",
            takes="model project_dir preset * interactive",
            has="send steer queue_follow_up cancel clear load_history",
        ),
        Name("render_event", takes="event"),
    ),
    "chimera.assembly.loop_adapter": (
        Name("REAL_LOOPS"),
        Name("is_real_loop", takes="name"),
        Name(
            "adapt_loop",
            takes="loop_name * provider tools system_prompt messages env max_steps abort_signal interceptors",
        ),
    ),
    "chimera.testing": (
        Name("create_harness"),
        Name("create_assembled_harness", takes="script * workspace provider tools agent_kwargs"),
        Name("HarnessRun", fields="events result error files_created files_modified files_deleted"),
        Name("default_test_tools", takes="workspace"),
    ),
}

PENDING: dict[str, str] = {}
"""Modules of the table that do not exist yet, and why. An entry whose module exists fails the tests."""
