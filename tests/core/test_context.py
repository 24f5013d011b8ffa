"""The durable conversation."""

from __future__ import annotations

from chimera.core.context import Context
from chimera.types import Message


def test_what_is_sent_is_the_prompt_and_all_messages() -> None:
    context = Context("be good", [Message.user("a")])
    context.add(Message.assistant("b"))
    assert context.to_messages() == [Message.system("be good"), Message.user("a"), Message.assistant("b")]
    assert context.messages == [Message.user("a"), Message.assistant("b")]


def test_without_a_prompt_none_is_sent() -> None:
    for system in (None, ""):
        assert Context(system, [Message.user("a")]).to_messages() == [Message.user("a")]


def test_what_is_sent_is_a_list_of_its_own() -> None:
    given = [Message.user("a")]
    context = Context(None, given)
    context.to_messages().clear()
    given.clear()
    assert context.messages == [Message.user("a")]


def test_the_same_prompt_is_the_same_message_and_another_one_is_another() -> None:
    context = Context("one")
    first = context.to_messages()[0]
    assert context.to_messages()[0] is first
    context.system = "two"
    assert context.to_messages() == [Message.system("two")]


def test_every_conversation_has_an_id_of_its_own_unless_it_is_given_one() -> None:
    assert Context().conversation_id != Context().conversation_id
    assert Context(conversation_id="mine").conversation_id == "mine"
