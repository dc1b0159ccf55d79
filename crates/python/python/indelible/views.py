"""Views and security contexts: which objects a program has in its memory, with which rights."""

from ._resume import Left, Resumed, resume
from ._views import AttachedView, Rule, Rules, SecurityContext, SlotState, View, ViewSlot

__all__ = [
    "AttachedView",
    "Left",
    "Resumed",
    "Rule",
    "Rules",
    "SecurityContext",
    "SlotState",
    "View",
    "ViewSlot",
    "resume",
]
