"""Results of requests to a server, and of their tries."""

from __future__ import annotations

import enum
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from pytest_adaptive_eval.items.item import Status

MEANINGS: Mapping[int, str] = {
    400: "the request is malformed, or sets what this server does not know",
    401: "the key is missing or wrong",
    402: "the account cannot pay",
    403: "the key may not do this",
    404: "no such path or model",
    405: "the path takes no such request",
    408: "the server gave up waiting",
    413: "the prompt is too large",
    415: "the server takes no JSON",
    422: "a field of the request is wrong",
    425: "too early",
    429: "too many requests",
    500: "the server failed",
    501: "the server cannot do this",
    502: "the server behind the gateway failed",
    503: "the server is overloaded or starting",
    504: "the server behind the gateway took too long",
    529: "the server is overloaded",
}
#: Temporary states of the server; such a request waits until its deadline.
WAITING = frozenset({408, 425, 429, 502, 503, 504, 529})
#: Those of them by which a server says that requests come too soon.
TOO_MANY = frozenset({429, 503, 529})
#: Time limits set by the server.
TOO_SLOW = frozenset({408, 504})
#: Faults of either the request or the server.
DOUBTFUL = frozenset({500})
#: Codes by which a server says that it filtered a prompt.
FILTERED = frozenset({"content_filter", "content_policy_violation"})


@dataclass(frozen=True, slots=True)
class Delivery:
    """Result of one request.

    Args:
        status: ``ok`` if the server replied with a JSON object.
        data: The object; empty if the status is not ok.
        detail: Sentence about the fault; holds foreign text, but no secret.
        code: HTTP status code; 0 without a reply.
        seconds: Time with a request open, up to the end of this one and since another one ended, see
            `models.endpoint.limits.OpenTime`.
        took: Time from the last sending of the request to its reply.
        headers: The reply's headers that no standard defines (``x-...``, ``cf-...``), names in lower case, without
            secrets; empty if the status is not ok.
        sent: The request, see `models.base.sent_request`.
    """

    status: Status
    data: Mapping[str, Any]
    detail: str = ""
    code: int = 0
    seconds: float = 0.0
    took: float = 0.0
    headers: Mapping[str, str] = field(default_factory=dict)
    sent: str = ""


#: Takes the index and the reply of a request as soon as it is there.
Delivered = Callable[[int, Delivery], object]
#: Content of a request, or what makes it when it is sent.
Body = bytes | Callable[[], bytes]


class CallFault(enum.Enum):
    """Cause of a failed try, which determines whether another try may help."""

    FINAL = enum.auto()  # another try cannot help
    DOUBTFUL = enum.auto()  # caused by the request or the server
    WAITING = enum.auto()  # caused by a temporary state of the server
    ABSENT = enum.auto()  # no server listens


@dataclass(frozen=True, slots=True)
class Attempt:
    """One attempt: its delivery, the cause if it failed, and the seconds that the server asked to wait."""

    delivery: Delivery
    fault: CallFault = CallFault.FINAL
    wait: float = 0.0

    @property
    def too_many(self) -> bool:
        """Whether the server said that requests come too soon."""
        return self.delivery.code in TOO_MANY


@dataclass(slots=True)
class Request:
    """One request, and the state of its tries."""

    method: str
    path: str
    content: bytes | None = None
    deadline: float = math.inf
    begun: float = 0.0  # time at which it was last sent
    last: Attempt | None = None
    tries: int = 0
    doubtful: int = 0
    #: Whether it counts among those at the server.
    in_slot: bool = False
    #: Whether a try is in progress.
    sent: bool = False
    #: Time of the server's last answer to any request before the latest try began.
    answered_before: float = -math.inf
    #: Times at which the last two tries ended.
    previous_fault: float = -math.inf
    latest_fault: float = -math.inf

    def note(self, last: Attempt, now: float) -> None:
        """Record the end of a try."""
        self.last, self.sent = last, False
        self.tries += 1
        self.previous_fault, self.latest_fault = self.latest_fault, now
