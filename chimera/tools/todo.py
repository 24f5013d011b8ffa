"""A list of what is to be done, one for each conversation."""

from __future__ import annotations

from collections import OrderedDict
from threading import Lock
from typing import Any
from weakref import WeakKeyDictionary, ref

from chimera.core.tool import BaseTool, ToolEnv
from chimera.tools._base import object_schema
from chimera.types import ToolResult

__all__ = ["TodoTool"]

_MARKS = {"pending": "[ ]", "in_progress": "[>]", "completed": "[x]"}
_REMEMBERED = 256

Items = list[dict[str, str]]


class TodoTool(BaseTool):
    """Keeps a task list and returns it. A list belongs to the conversation that the environment is of, else to the
    environment, else to the tool. The 256 conversations used last are remembered.
    """

    name = "todo"
    description = (
        "Keep a list of the steps of your task. Give the whole list in `todos` each time, with the state of every "
        "item; it replaces the one before. Have one item in_progress at a time, and mark it completed as soon as it is "
        "done. "
        "Without `todos` the list is returned as it is."
    )
    parameters = object_schema(
        {
            "todos": {
                "type": "array",
                "description": "The whole list, in the order of the work.",
                "items": object_schema(
                    {
                        "content": {"type": "string", "minLength": 1, "description": "What is to be done."},
                        "status": {"type": "string", "enum": list(_MARKS), "description": "Default pending."},
                    },
                    required=("content",),
                ),
            }
        }
    )
    effect = "read"

    def __init__(self) -> None:
        self._lists = _Lists()

    def execute(self, args: dict[str, Any], env: ToolEnv | None = None) -> ToolResult:
        return self._answer(args, env)

    async def async_execute(self, args: dict[str, Any], env: ToolEnv | None = None) -> ToolResult:
        return self._answer(args, env)

    def items(self, env: ToolEnv | None = None) -> Items:
        """Return a copy of the list that calls with this environment see."""
        return [dict(item) for item in self._lists.get(env)]

    def _answer(self, args: dict[str, Any], env: ToolEnv | None) -> ToolResult:
        if "todos" in args:
            todos = [{"content": item["content"], "status": item.get("status", "pending")} for item in args["todos"]]
            self._lists.put(env, todos)
        items = self._lists.get(env)
        done = sum(item["status"] == "completed" for item in items)
        return ToolResult(_rendered(items, done), metadata={"total": len(items), "completed": done})


class _Lists:
    """Lists by conversation, by environment, and one for calls that have neither."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._of_conversations: OrderedDict[str, Items] = OrderedDict()
        self._of_environments: WeakKeyDictionary[Any, Items] = WeakKeyDictionary()
        self._own: Items = []

    def get(self, env: Any) -> Items:
        with self._lock:
            key = _conversation(env)
            if key is not None:
                return self._of_conversations.get(key, [])
            return self._of_environments.get(env, []) if _can_own(env) else self._own

    def put(self, env: Any, items: Items) -> None:
        with self._lock:
            key = _conversation(env)
            if key is not None:
                self._of_conversations[key] = items
                self._of_conversations.move_to_end(key)
                if len(self._of_conversations) > _REMEMBERED:
                    self._of_conversations.popitem(last=False)
            elif _can_own(env):
                self._of_environments[env] = items
            else:
                self._own = items


def _conversation(env: Any) -> str | None:
    return getattr(getattr(env, "identity", None), "conversation_id", None)


def _can_own(env: Any) -> bool:
    """Say whether a list can be tied to the life of `env`, which may be a mere path or nothing."""
    try:
        hash(env)
        ref(env)
    except TypeError:
        return False
    return True


def _rendered(items: Items, done: int) -> str:
    if not items:
        return "[the list is empty]"
    lines = [f"{_MARKS[item['status']]} {item['content']}" for item in items]
    return "\n".join([*lines, f"{done} of {len(items)} done"])
